/* Fingerprints of stages: what was added, as text whose hash is the key of the stage's output. What belongs into one, the strategies know. */
#include "pipeline/fingerprint.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/file.h"

/* ---- The build of this code ---- */
typedef struct build_search {
  uintptr_t address; /* inside the object that is looked for */
  char id[65];
} build_search;

static void read_notes(const uint8_t* notes, size_t size, build_search* out) {
  static const char digits[] = "0123456789abcdef";
  ElfW(Nhdr) note;
  while (size >= sizeof note) {
    memcpy(&note, notes, sizeof note);
    size_t name = (note.n_namesz + 3u) & ~3u, value = (note.n_descsz + 3u) & ~3u;
    if (size - sizeof note < name || size - sizeof note - name < value) return;
    const uint8_t* bytes = notes + sizeof note + name;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(notes + sizeof note, "GNU", 4)) {
      for (size_t i = 0; i < note.n_descsz && i < 32; i++) {
        out->id[2 * i] = digits[bytes[i] >> 4];
        out->id[2 * i + 1] = digits[bytes[i] & 15];
      }
      return;
    }
    notes += sizeof note + name + value;
    size -= sizeof note + name + value;
  }
}

static int examine_object(struct dl_phdr_info* info, size_t size, void* user) {
  build_search* search = user;
  (void)size;
  bool inside = false;
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    inside |= part->p_type == PT_LOAD && search->address - info->dlpi_addr - part->p_vaddr < part->p_memsz;
  }
  for (unsigned i = 0; inside && i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    if (part->p_type == PT_NOTE && !*search->id) read_notes((const uint8_t*)(info->dlpi_addr + part->p_vaddr), part->p_memsz, search);
  }
  return inside;
}

genai_status* fingerprint_init(genai_fingerprint* self) {
  *self = (genai_fingerprint){0};
  build_search search = {.address = (uintptr_t)&fingerprint_init};
  dl_iterate_phdr(examine_object, &search);
  /* The version alone does not tell two states of the code apart. */
  if (!*search.id) genai_fingerprint_set_unknown(self, "the program was linked without a build id");
  GENAI_TRY(genai_fingerprint_add(self, "genai", genai_version()));
  return genai_fingerprint_add(self, "build", search.id);
}

void fingerprint_deinit(genai_fingerprint* self) {
  text_deinit(&self->content);
  *self = (genai_fingerprint){0};
}

void fingerprint_key(const genai_fingerprint* self, char key[65]) {
  sha256_hex(self->content.data, self->content.length, key);
}

/* Lengths keep apart what separators inside of values would mix up. */
genai_status* genai_fingerprint_add(genai_fingerprint* self, const char* name, const char* value) {
  return text_printf(&self->content, "%s (%zu): %s\n", name, strlen(value), value);
}

genai_status* genai_fingerprint_add_file(genai_fingerprint* self, const char* name, const char* path) {
  char hex[65];
  GENAI_TRY(file_sha256(path, NULL, hex));
  return genai_fingerprint_add(self, name, hex);
}

genai_status* genai_fingerprint_add_options(genai_fingerprint* self, const genai_options* options, const genai_option_spec* specs,
                                            size_t count, unsigned stage, const char* const* except) {
  /* In the order of the table, so that the order in which options were set does not matter. */
  for (size_t i = 0; i < count; i++) {
    const char* value = genai_options_text(options, specs[i].name, specs[i].default_value); /* a default said aloud is the same */
    bool excepted = false;
    for (size_t j = 0; except && except[j]; j++) excepted |= !strcmp(except[j], specs[i].name);
    if (value && !excepted && specs[i].stages & 1u << stage) GENAI_TRY(genai_fingerprint_add(self, specs[i].name, value));
  }
  return NULL;
}

void genai_fingerprint_set_unknown(genai_fingerprint* self, const char* why) {
  if (!self->unknown) self->unknown = why;
}
