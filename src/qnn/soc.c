/* The SoCs genai compiles for, as data. Ids, HTP architectures and VTCM sizes follow the table of ExecuTorch's Qualcomm backend
 * (serialization/qc_schema.py) and the SoC models of the QNN API; tests/qnn/test_soc.c compiles for each one and compares what the
 * library itself records: its architecture, and the VTCM it takes when left to choose. */
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "qnn/qnn.h"

static const qnn_soc socs[] = {
    /* phones, newest first */
    {"SM8850", "Snapdragon 8 Elite Gen 5", 87, 81, 8, 6},
    {"SM8845", "Snapdragon 8 Gen 5", 97, 81, 8, 0},
    {"SM8750", "Snapdragon 8 Elite", 69, 79, 8, 0},
    {"SM8735", "Snapdragon 8s Gen 4", 85, 73, 8, 0},
    {"SM8650", "Snapdragon 8 Gen 3", 57, 75, 8, 0},
    {"SM8635", "Snapdragon 8s Gen 3", 68, 73, 4, 0},
    {"SM8550", "Snapdragon 8 Gen 2", 43, 73, 8, 0},
    {"SM8475", "Snapdragon 8+ Gen 1", 42, 69, 8, 0},
    {"SM8450", "Snapdragon 8 Gen 1", 36, 69, 8, 0},
    {"SM8350", "Snapdragon 888", 30, 68, 4, 0},
    {"SM7750", "Snapdragon 7 Gen 4", 86, 73, 4, 0},
    {"SM7675", "Snapdragon 7+ Gen 3", 70, 73, 4, 0},
    {"SM7635", "Snapdragon 7s Gen 3", 73, 73, 2, 0},
    {"SM7550", "Snapdragon 7 Gen 3", 64, 73, 2, 0},
    {"SM7475", "Snapdragon 7+ Gen 2", 54, 69, 4, 0},
    {"SM7450", "Snapdragon 7 Gen 1", 41, 69, 2, 0},
    {"SM7435", "Snapdragon 7s Gen 2", 61, 73, 2, 0},
    {"SM7325", "Snapdragon 778G", 35, 68, 2, 0},
    {"SM6650", "Snapdragon 6 Gen 4", 74, 73, 2, 0},
    {"SM6475", "Snapdragon 6 Gen 3", 76, 73, 2, 0},
    {"SM6450", "Snapdragon 6 Gen 1", 50, 73, 2, 0},
    /* computers */
    {"SC8480XP", "Snapdragon X2 Elite", 88, 81, 8, 0},
    {"SC8380XP", "Snapdragon X Elite", 60, 73, 8, 0},
    {"SC8280X", "Snapdragon 8cx Gen 3", 37, 68, 4, 0},
    /* industry, cars, glasses, watches */
    {"QCS9100", "Dragonwing IQ-9100", 77, 73, 8, 0},
    {"QCS8550", "Dragonwing QCS8550", 66, 73, 8, 0},
    {"QCS8300", "Dragonwing QCS8300", 82, 75, 8, 0},
    {"QCM6690", "Dragonwing QCM6690", 78, 73, 2, 0},
    {"QCM6490", "Dragonwing QCM6490", 93, 68, 2, 0},
    {"SA8797", "Snapdragon SA8797P", 72, 81, 16, 0},
    {"SA8620P", "Snapdragon Ride SA8620P", 67, 75, 8, 0},
    {"SA8295", "Snapdragon SA8295P", 39, 68, 8, 0},
    {"SA8255", "Snapdragon SA8255P", 52, 73, 8, 0},
    {"SXR2330P", "Snapdragon SXR2330P", 75, 79, 8, 0},
    {"SXR2230P", "Snapdragon XR2 Gen 2", 53, 69, 8, 0},
    {"SXR1230P", "Snapdragon AR2 Gen 1", 45, 73, 2, 0},
    {"SSG2115P", "Snapdragon AR2 Gen 1 (SSG2115P)", 46, 73, 2, 0},
    {"SSG2125P", "Snapdragon AR2 Gen 1 (SSG2125P)", 58, 73, 2, 0},
    {"SAR2230P", "Snapdragon SAR2230P", 95, 81, 4, 6},
    {"SW6100", "Snapdragon Wear SW6100", 96, 81, 4, 0},
};
enum { SOC_COUNT = sizeof socs / sizeof *socs };

size_t qnn_soc_count(void) {
  return SOC_COUNT;
}

const qnn_soc* qnn_soc_at(size_t index) {
  return index < SOC_COUNT ? &socs[index] : NULL;
}

/* How far `wanted` is from this SoC: 0 when one of its names contains it, else the smaller edit distance. */
static size_t soc_distance(const qnn_soc* soc, const char* wanted) {
  if (*wanted && (strcasestr(soc->name, wanted) || strcasestr(soc->marketing, wanted))) return 0;
  size_t by_name = text_distance(wanted, soc->name), by_marketing = text_distance(wanted, soc->marketing);
  return by_name < by_marketing ? by_name : by_marketing;
}

genai_status* qnn_soc_find(const char* name, const qnn_soc** out) {
  for (size_t i = 0; i < SOC_COUNT; ++i) {
    if (strcasecmp(name, socs[i].name) == 0 || strcasecmp(name, socs[i].marketing) == 0) {
      *out = &socs[i];
      return NULL;
    }
  }
  enum { OFFERED = 3 };
  const qnn_soc* nearest[OFFERED] = {0};
  size_t distances[OFFERED];
  for (size_t i = 0; i < SOC_COUNT; ++i) {
    const qnn_soc* candidate = &socs[i];
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
