/* The SoCs genai compiles for, as data, and how one is found. Ids, HTP architectures, VTCM sizes and LPAI versions follow the table of
 * ExecuTorch's Qualcomm backend (serialization/qc_schema.py) and the SoC models of the QNN API; tests/qnn/test_soc.c compiles for each one
 * and compares with what the library itself records and accepts: architecture, the VTCM it takes when left to choose, half precision. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/text.h"
#include "qnn/soc_internal.h"

static const qnn_soc socs[] = {
    /* phones, newest first */
    {"SM8850", "Snapdragon 8 Elite Gen 5", 87, 81, 8, 6, true},
    {"SM8845", "Snapdragon 8 Gen 5", 97, 81, 8, 0, true},
    {"SM8750", "Snapdragon 8 Elite", 69, 79, 8, 0, true},
    {"SM8735", "Snapdragon 8s Gen 4", 85, 73, 8, 0, false},
    {"SM8650", "Snapdragon 8 Gen 3", 57, 75, 8, 0, true},
    {"SM8635", "Snapdragon 8s Gen 3", 68, 73, 4, 0, false},
    {"SM8550", "Snapdragon 8 Gen 2", 43, 73, 8, 0, true},
    {"SM8475", "Snapdragon 8+ Gen 1", 42, 69, 8, 0, true},
    {"SM8450", "Snapdragon 8 Gen 1", 36, 69, 8, 0, true},
    {"SM8350", "Snapdragon 888", 30, 68, 4, 0, true},
    {"SM7750", "Snapdragon 7 Gen 4", 86, 73, 4, 0, false},
    {"SM7675", "Snapdragon 7+ Gen 3", 70, 73, 4, 0, false},
    {"SM7635", "Snapdragon 7s Gen 3", 73, 73, 2, 0, false},
    {"SM7550", "Snapdragon 7 Gen 3", 64, 73, 2, 0, false},
    {"SM7475", "Snapdragon 7+ Gen 2", 54, 69, 4, 0, false},
    {"SM7450", "Snapdragon 7 Gen 1", 41, 69, 2, 0, true},
    {"SM7435", "Snapdragon 7s Gen 2", 61, 73, 2, 0, false},
    {"SM7325", "Snapdragon 778G", 35, 68, 2, 0, false},
    {"SM6650", "Snapdragon 6 Gen 4", 74, 73, 2, 0, false},
    {"SM6475", "Snapdragon 6 Gen 3", 76, 73, 2, 0, false},
    {"SM6450", "Snapdragon 6 Gen 1", 50, 73, 2, 0, false},
    /* computers */
    {"SC8480XP", "Snapdragon X2 Elite", 88, 81, 8, 0, true},
    {"SC8380XP", "Snapdragon X Elite", 60, 73, 8, 0, true},
    {"SC8280X", "Snapdragon 8cx Gen 3", 37, 68, 4, 0, false},
    /* industry, cars, glasses, watches */
    {"QCS9100", "Dragonwing IQ-9100", 77, 73, 8, 0, true},
    {"QCS8550", "Dragonwing QCS8550", 66, 73, 8, 0, true},
    {"QCS8300", "Dragonwing QCS8300", 82, 75, 8, 0, true},
    {"QCM6690", "Dragonwing QCM6690", 78, 73, 2, 0, false},
    {"QCM6490", "Dragonwing QCM6490", 93, 68, 2, 0, false},
    {"SA8797", "Snapdragon SA8797P", 72, 81, 16, 0, true},
    {"SA8620P", "Snapdragon Ride SA8620P", 67, 75, 8, 0, true},
    {"SA8295", "Snapdragon SA8295P", 39, 68, 8, 0, true},
    {"SA8255", "Snapdragon SA8255P", 52, 73, 8, 0, true},
    {"SXR2330P", "Snapdragon SXR2330P", 75, 79, 8, 0, true},
    {"SXR2230P", "Snapdragon XR2 Gen 2", 53, 69, 8, 0, true},
    {"SXR1230P", "Snapdragon AR2 Gen 1", 45, 73, 2, 0, false},
    {"SSG2115P", "Snapdragon AR2 Gen 1 (SSG2115P)", 46, 73, 2, 0, false},
    {"SSG2125P", "Snapdragon AR2 Gen 1 (SSG2125P)", 58, 73, 2, 0, false},
    {"SAR2230P", "Snapdragon SAR2230P", 95, 81, 4, 6, false},
    {"SW6100", "Snapdragon Wear SW6100", 96, 81, 4, 0, false},
};
enum { SOC_COUNT = sizeof socs / sizeof *socs };

/* Ids under which Linux knows these chips on a device (include/dt-bindings/arm/qcom,ids.h). They begin where QNN's own end. */
static const struct {
  uint32_t id;
  const char* name;
} device_ids[] = {
    {439, "SM8350"}, {449, "SC8280X"}, {457, "SM8450"},  {460, "SA8295"},  {480, "SM8450"},   {482, "SM8450"},
    {519, "SM8550"}, {530, "SM8475"},  {531, "SM8475"},  {540, "SM8475"},  {555, "SC8380XP"}, {557, "SM8650"},
    {577, "SM8650"}, {603, "QCS8550"}, {604, "QCS8550"}, {614, "SM8635"},  {618, "SM8750"},   {636, "SM7635"},
    {640, "SM6650"}, {641, "SM6650"},  {657, "QCM6690"}, {658, "QCM6690"}, {667, "QCS9100"},  {674, "QCS8300"},
};
enum { DEVICE_ID_COUNT = sizeof device_ids / sizeof *device_ids };

/* Architectures of ids that have no row of their own: of QNN's ids as a binary records that the library compiles for them (QAIRT 2.49.40),
 * of the two device ids as their users report (SM8750P and CQ8750S, which QNN cannot place). */
static const struct {
  uint32_t id, arch;
} known_ids[] = {
    {32, 68},  {34, 68},  {38, 68},  {62, 68},  {63, 68},  {89, 73},  {90, 75},  {91, 73},  {92, 81},  {94, 81},
    {99, 81},  {100, 73}, {101, 73}, {102, 73}, {103, 85}, {104, 79}, {105, 79}, {109, 81}, {110, 81}, {111, 81},
    {112, 85}, {113, 85}, {114, 85}, {115, 81}, {117, 81}, {119, 73}, {639, 79}, {705, 79},
};
enum { KNOWN_ID_COUNT = sizeof known_ids / sizeof *known_ids };

size_t qnn_soc_count(void) {
  return SOC_COUNT;
}

const qnn_soc* qnn_soc_at(size_t index) {
  return index < SOC_COUNT ? &socs[index] : NULL;
}

static const qnn_soc* entry(const qnn_soc_list* list, size_t index) {
  return index < list->n_users ? &list->users[index].soc : &socs[list->kept ? list->kept[index - list->n_users] : index - list->n_users];
}

static const qnn_soc* find_name(const qnn_soc_list* list, const char* name) {
  for (size_t i = 0; i < list->n_users + list->n_kept; ++i) {
    const qnn_soc* soc = entry(list, i);
    if (strcasecmp(name, soc->name) == 0 || strcasecmp(name, soc->marketing) == 0) return soc;
  }
  return NULL;
}

static const qnn_soc* find_id(const qnn_soc_list* list, uint32_t id) {
  for (size_t i = 0; i < list->n_users; ++i) { /* what a user says of an id wins, whichever kind of id it is */
    const qnn_soc_entry* given = &list->users[i];
    for (uint32_t j = 0; j < given->n_device_ids; ++j) {
      if (given->device_ids[j] == id) return &given->soc;
    }
  }
  for (size_t i = list->n_users; i < list->n_users + list->n_kept; ++i) {
    if (entry(list, i)->model == id) return entry(list, i);
  }
  for (size_t i = 0; i < list->n_users; ++i) { /* after genai's: SM8750P in a file does not take 69 from SM8750 */
    if (list->users[i].soc.model == id) return &list->users[i].soc;
  }
  for (size_t i = 0; i < DEVICE_ID_COUNT; ++i) {
    if (device_ids[i].id == id) return find_name(list, device_ids[i].name);
  }
  return NULL;
}

/* Every id of a SoC: QNN's, and those of devices. The distance of the nearest of them to `id`. */
static uint32_t id_distance(const qnn_soc* soc, uint32_t id) {
  uint32_t nearest = soc->model > id ? soc->model - id : id - soc->model;
  for (size_t i = 0; i < DEVICE_ID_COUNT; ++i) {
    if (strcmp(device_ids[i].name, soc->name)) continue;
    uint32_t distance = device_ids[i].id > id ? device_ids[i].id - id : id - device_ids[i].id;
    if (distance < nearest) nearest = distance;
  }
  return nearest;
}

static const qnn_soc* nearest_of_arch(const qnn_soc_list* list, uint32_t id, uint32_t arch) {
  const qnn_soc* nearest = NULL;
  for (size_t i = 0; i < list->n_users + list->n_kept; ++i) {
    const qnn_soc* soc = entry(list, i);
    if (soc->htp_arch == arch && (!nearest || id_distance(soc, id) < id_distance(nearest, id))) nearest = soc;
  }
  return nearest;
}

/* "57", or "57:v75". */
static bool read_id(const char* wanted, uint32_t* id, uint32_t* arch) {
  char* end;
  if (*wanted < '0' || *wanted > '9') return false;
  errno = 0;
  unsigned long value = strtoul(wanted, &end, 10);
  if (errno || value > 1000000) return false;
  *id = (uint32_t)value;
  *arch = 0;
  if (!*end) return true;
  if (end[0] != ':' || (end[1] != 'v' && end[1] != 'V') || end[2] < '0' || end[2] > '9') return false;
  value = strtoul(end + 2, &end, 10);
  *arch = value <= 1000 ? (uint32_t)value : 1000;
  return !*end && *arch;
}

static genai_status* map_id(const qnn_soc_list* list, uint32_t id, uint32_t arch, const qnn_soc** out) {
  for (size_t i = 0; !arch && i < KNOWN_ID_COUNT; ++i) {
    if (known_ids[i].id == id) arch = known_ids[i].arch;
  }
  if (!arch)
    return genai_status_create(
        GENAI_ERROR_CONFIG_VALIDATION,
        "unknown SoC id %u, and its HTP architecture is not known either: give it too, such as %u:v79, to compile for the nearest SoC of "
        "that "
        "architecture; or describe the SoC in a file (--soc-file, docs/formats/socs.md); `genai soc` lists the known ones",
        id, id);
  const qnn_soc* nearest = nearest_of_arch(list, id, arch);
  if (!nearest)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "unknown SoC id %u with HTP v%u, and no known SoC has that architecture: describe it in a file (--soc-file, "
                               "docs/formats/socs.md)",
                               id, arch);
  log_write(
      LOG_WARNING,
      "SoC id %u (HTP v%u) is not in the table: taken as %s (%s, id %u, %u MB VTCM), the nearest of the same architecture; if the chip "
      "has less VTCM, describe it in a file (--soc-file)",
      id, arch, nearest->name, nearest->marketing, nearest->model, nearest->vtcm_mb);
  *out = nearest;
  return NULL;
}

/* How far `wanted` is from this SoC: 0 when one of its names contains it, else the smaller edit distance. */
static size_t soc_distance(const qnn_soc* soc, const char* wanted) {
  if (*wanted && (strcasestr(soc->name, wanted) || strcasestr(soc->marketing, wanted))) return 0;
  size_t by_name = text_distance(wanted, soc->name), by_marketing = text_distance(wanted, soc->marketing);
  return by_name < by_marketing ? by_name : by_marketing;
}

static genai_status* unknown_name(const qnn_soc_list* list, const char* name) {
  enum { OFFERED = 3 };
  const qnn_soc* nearest[OFFERED] = {0};
  size_t distances[OFFERED];
  for (size_t i = 0; i < list->n_users + list->n_kept; ++i) {
    const qnn_soc* candidate = entry(list, i);
    size_t distance = soc_distance(candidate, name);
    for (size_t place = 0; place < OFFERED; ++place) { /* insertion: the table's order, newest first, breaks ties */
      if (nearest[place] && distances[place] <= distance) continue;
      const qnn_soc* moved = nearest[place];
      size_t moved_distance = moved ? distances[place] : 0;
      nearest[place] = candidate;
      distances[place] = distance;
      if (!moved) break;
      candidate = moved;
      distance = moved_distance;
    }
  }
  return genai_status_create(
      GENAI_ERROR_CONFIG_VALIDATION, "unknown SoC '%s': the nearest known ones are %s (%s), %s (%s) and %s (%s); `genai soc` lists all",
      name, nearest[0]->name, nearest[0]->marketing, nearest[1]->name, nearest[1]->marketing, nearest[2]->name, nearest[2]->marketing);
}

genai_status* qnn_soc_list_find(const qnn_soc_list* list, const char* wanted, const qnn_soc** out) {
  uint32_t id, arch;
  const qnn_soc* found = find_name(list, wanted);
  if (!found && read_id(wanted, &id, &arch)) {
    found = find_id(list, id);
    if (!found) return map_id(list, id, arch, out);
    if (arch && arch != found->htp_arch)
      return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "SoC '%s' says HTP v%u, but id %u is %s (%s) with HTP v%u", wanted, arch,
                                 id, found->name, found->marketing, found->htp_arch);
  }
  if (!found) return unknown_name(list, wanted);
  *out = found;
  return NULL;
}

genai_status* qnn_soc_find(const char* wanted, const qnn_soc** out) {
  const qnn_soc_list list = {.n_kept = SOC_COUNT};
  return qnn_soc_list_find(&list, wanted, out);
}
