/* genai doctor: what was found on this machine, what is missing, and what to do about it. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "genie/genie.h"
#include "qnn/qnn.h"

static const option_spec options[] = {
    {"--qnn-dir", "DIR", false, "look into this folder alone"},
    OPTIONS_OUTPUT,
};

typedef struct findings {
  text search;
  bool loaded;
  qnn_library_info library;
  char reason[4096];
  bool has_genie;
  genie_version genie;
  char genie_reason[1024];
  uint64_t memory, disk;
  long processors;
} findings;

static void write_facts(json_writer* writer, const findings* found) {
  json_begin_object(writer);
  json_key(writer, "genai_version");
  json_write_string(writer, genai_version());
  json_key(writer, "qnn");
  json_begin_object(writer);
  json_key(writer, "available");
  json_write_bool(writer, found->loaded);
  if (found->loaded) {
    char version[64];
    json_key(writer, "directory");
    json_write_string(writer, found->library.directory);
    json_key(writer, "build_id");
    json_write_string(writer, found->library.build_id);
    snprintf(version, sizeof version, "%u.%u.%u", found->library.core_major, found->library.core_minor, found->library.core_patch);
    json_key(writer, "core_api");
    json_write_string(writer, version);
    snprintf(version, sizeof version, "%u.%u.%u", found->library.backend_major, found->library.backend_minor, found->library.backend_patch);
    json_key(writer, "htp_api");
    json_write_string(writer, version);
    json_key(writer, "simulator");
    json_write_bool(writer, found->library.is_simulator);
  } else {
    json_key(writer, "reason");
    json_write_string(writer, found->reason);
  }
  json_key(writer, "search");
  json_write_bytes(writer, found->search.data ? found->search.data : "", found->search.length);
  json_end_object(writer);
  json_key(writer, "genie");
  json_begin_object(writer);
  json_key(writer, "available");
  json_write_bool(writer, found->has_genie);
  if (found->has_genie) {
    char version[64];
    snprintf(version, sizeof version, "%u.%u.%u", found->genie.major, found->genie.minor, found->genie.patch);
    json_key(writer, "version");
    json_write_string(writer, version);
  } else {
    json_key(writer, "reason");
    json_write_string(writer, found->genie_reason);
  }
  json_end_object(writer);
  json_key(writer, "processors");
  json_write_integer(writer, found->processors);
  json_key(writer, "memory_bytes");
  json_write_unsigned(writer, found->memory);
  json_key(writer, "disk_free_bytes");
  json_write_unsigned(writer, found->disk);
  json_end_object(writer);
}

static void print_lines(const findings* found) {
  char memory[32], disk[32];
  struct utsname host = {0};
  uname(&host);
  format_bytes(found->memory, memory);
  format_bytes(found->disk, disk);
  printf("genai       %s\n", genai_version());
  printf("host        %s %s, %ld processors, %s memory, %s free in this folder\n", host.sysname, host.machine, found->processors, memory,
         disk);
  if (found->loaded) {
    printf("QNN         %s\n", found->library.build_id);
    printf("            in %s\n", found->library.directory);
    printf("            core API %u.%u.%u, HTP API %u.%u.%u, %s\n", found->library.core_major, found->library.core_minor,
           found->library.core_patch, found->library.backend_major, found->library.backend_minor, found->library.backend_patch,
           found->library.is_simulator ? "simulator" : "device");
    printf("compile     yes\nrun         yes, on the simulator (its speed says nothing about a device)\n");
  } else {
    printf("QNN         missing: nothing can be compiled or run on the HTP\n%s\n", found->reason);
  }
  if (found->has_genie) {
    printf("Genie       %u.%u.%u: engine qairt runs its bundles\n", found->genie.major, found->genie.minor, found->genie.patch);
  } else {
    printf("Genie       missing: engine qairt compiles but cannot run\n%s\n", found->genie_reason);
  }
  if (found->search.length)
    printf("\nsearched\n%s%s", found->search.data, found->search.data[found->search.length - 1] == '\n' ? "" : "\n");
}

static void look_for_genie(const qnn_library* library, findings* found) {
  genie_library* genie = NULL;
  genai_status* status = library ? genie_library_open(library, &genie)
                                 : genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE, "it lies beside the QNN libraries");
  found->has_genie = !status;
  if (genie) found->genie = genie_library_version(genie);
  genai_status_format(status, found->genie_reason, sizeof found->genie_reason);
  genai_status_free(status);
  genie_library_close(genie);
}

static genai_status* run(cli* app, const arguments* given) {
  findings found = {0};
  qnn_library* library = NULL;
  GENAI_TRY(qnn_library_describe_search(&found.search));
  genai_status* missing = qnn_library_open(argument_value(given, "--qnn-dir"), &library);
  found.loaded = !missing;
  if (library) qnn_library_get_info(library, &found.library);
  genai_status_format(missing, found.reason, sizeof found.reason);
  look_for_genie(library, &found);
  found.processors = sysconf(_SC_NPROCESSORS_ONLN);
  found.memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  found.disk = disk_free_bytes(".");
  genai_status* status = NULL;
  if (app->json) {
    text out = {0};
    json_writer writer;
    json_writer_init(&writer, &out, false);
    write_facts(&writer, &found);
    status = cli_print_json(&writer, &out);
    text_deinit(&out);
  } else {
    print_lines(&found);
  }
  qnn_library_close(library);
  text_deinit(&found.search);
  if (status || !missing) {
    genai_status_free(missing);
    return status;
  }
  genai_status_free(missing);
  return genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE, "Qualcomm's QNN libraries do not load; what to do stands above");
}

const command_spec command_doctor = {
    .name = "doctor",
    .positionals = "",
    .summary = "which libraries were found, what is missing, and what to do about it",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
