/* The members of an ETRecord: which debug handles an instruction and a delegate's operators have. The program that the handles point into is
 * etrecord_program.c. */
#include "executorch/etrecord.h"

#include <string.h>

#include "base/json.h"
#include "executorch/etrecord_program.h"
#include "executorch/zip.h"

/* The only method name that the inspector of ExecuTorch 1.5.1 looks up, whatever the methods are called. */
#define INSPECTED "forward"

/* Each map has one entry for each method, and one under the name that is looked up. */
typedef void (*write_method)(json_writer* writer, const ir_graph* graph);

static genai_status* add_map(zip_writer* archive, const char* name, const ir_graph* const* graphs, size_t count, write_method write) {
  text out = {0};
  json_writer writer;
  json_writer_init(&writer, &out, false);
  json_begin_object(&writer);
  for (size_t i = 0; i <= count; i++) {
    const ir_graph* graph = graphs[i ? i - 1 : 0];
    json_key(&writer, i ? graph->name : INSPECTED);
    json_begin_object(&writer);
    json_key(&writer, "0"); /* a method is one instruction: the call of the delegate */
    write(&writer, graph);
    json_end_object(&writer);
  }
  json_end_object(&writer);
  genai_status* status = json_writer_finish(&writer);
  if (!status) status = zip_add(archive, name, out.data, out.length);
  text_deinit(&out);
  return status;
}

static void write_handles(json_writer* writer, const ir_graph* graph) {
  json_begin_array(writer);
  for (uint32_t i = 0; i < graph->n_ops; i++) json_write_unsigned(writer, i + 1);
  json_end_array(writer);
}

/* QNN's profile names operators as they were named when they were added, with more around it. The inspector takes the last name of the map that
 * is part of an event's, so that "q_rope" must not come after "q_rope.first": short names first. */
static void write_delegate(json_writer* writer, const ir_graph* graph) {
  size_t longest = 0;
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    size_t length = strlen(graph->ops[i]->name);
    longest = length > longest ? length : longest;
  }
  json_begin_object(writer);
  json_key(writer, "name");
  json_write_string(writer, "QnnBackend");
  json_key(writer, "delegate_map");
  json_begin_object(writer);
  for (size_t length = 0; length <= longest; length++) {
    for (uint32_t i = 0; i < graph->n_ops; i++) {
      if (strlen(graph->ops[i]->name) != length) continue;
      json_key(writer, graph->ops[i]->name);
      json_begin_array(writer);
      json_write_unsigned(writer, i + 1);
      json_end_array(writer);
    }
  }
  json_end_object(writer);
  json_end_object(writer);
}

static void write_outputs(json_writer* writer, const ir_graph* graph) {
  json_write_unsigned(writer, graph->n_outputs);
}

/* A program's member and the three that must stand beside it: empty ones are read as "none". */
static genai_status* add_program(zip_writer* archive, const char* name, const ir_graph* graph) {
  static const char* const parts[] = {"_state_dict", "_constants", "_example_inputs"};
  text program = {0}, part = {0};
  genai_status* status = etrecord_program(graph, &program);
  if (!status) status = zip_add(archive, name, program.data, program.length);
  for (size_t i = 0; !status && i < 3; i++) {
    text_clear(&part);
    status = text_printf(&part, "%s%s", name, parts[i]);
    if (!status) status = zip_add(archive, part.data, "", 0);
  }
  text_deinit(&part);
  text_deinit(&program);
  return status;
}

static genai_status* add_members(zip_writer* archive, const ir_graph* const* graphs, size_t count) {
  GENAI_TRY(zip_add(archive, "ETRECORD_V0", "", 0));
  GENAI_TRY(add_map(archive, "debug_handle_map", graphs, count, write_handles));
  GENAI_TRY(add_map(archive, "delegate_map", graphs, count, write_delegate));
  GENAI_TRY(add_map(archive, "instruction_id_to_num_outs_map", graphs, count, write_outputs));
  GENAI_TRY(add_program(archive, "edge_dialect_exported_program/" INSPECTED, graphs[0]));
  for (size_t i = 0; i < count; i++) {
    text name = {0};
    genai_status* status = text_printf(&name, "%s/" INSPECTED, graphs[i]->name);
    if (!status) status = add_program(archive, name.data, graphs[i]);
    text_deinit(&name);
    if (status) return status;
  }
  return NULL;
}

genai_status* etrecord_write(const char* path, const ir_graph* const* graphs, size_t count) {
  if (!count) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "\"%s\": an ETRecord needs at least one graph", path);
  zip_writer archive;
  GENAI_TRY(zip_create(path, &archive));
  genai_status* status = add_members(&archive, graphs, count);
  if (!status) return zip_commit(&archive);
  zip_abort(&archive);
  return status;
}
