/* The archive of an ETRecord and what is written into it. That ExecuTorch reads it is tests/interop/test_etrecord.py. The check value of
 * CRC-32 is the one of every catalogue ("123456789"). */
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "executorch/etrecord.h"
#include "executorch/etrecord_program.h"
#include "executorch/zip.h"
#include "scratch.h"

static void checksum(void** state) {
  (void)state;
  assert_int_equal(zip_crc32("123456789", 9), 0xcbf43926u);
  assert_int_equal(zip_crc32("", 0), 0);
}

static void an_archive_byte_by_byte(void** state) {
  (void)state;
  zip_writer archive;
  mapped_file file;
  assert_ok(zip_create(scratch_path("a.zip"), &archive));
  assert_ok(zip_add(&archive, "a", "123456789", 9));
  assert_ok(zip_commit(&archive));
  assert_ok(mapped_file_open(scratch_path("a.zip"), &file));
  static const uint8_t expected[] = {
      'P',  'K',  3,    4,    20,  0,   0,   8,   0,   0,   0,   0,   0x21, 0,   0x26, 0x39, 0xf4, 0xcb, 9,  0,  0, 0, 9, 0, 0, 0, 1,    0,
      0,    0,    'a',  '1',  '2', '3', '4', '5', '6', '7', '8', '9', 'P',  'K', 1,    2,    20,   0,    20, 0,  0, 8, 0, 0, 0, 0, 0x21, 0,
      0x26, 0x39, 0xf4, 0xcb, 9,   0,   0,   0,   9,   0,   0,   0,   1,    0,   0,    0,    0,    0,    0,  0,  0, 0, 0, 0, 0, 0, 0,    0,
      0,    0,    'a',  'P',  'K', 5,   6,   0,   0,   0,   0,   1,   0,    1,   0,    47,   0,    0,    0,  40, 0, 0, 0, 0, 0};
  assert_int_equal(file.size, sizeof expected);
  assert_memory_equal(file.data, expected, sizeof expected);
  mapped_file_close(&file);
  unlink(scratch_path("a.zip"));
}

static ir_graph* small_graph(void) {
  static const uint32_t dims[] = {1, 2, 4};
  static const float weights[] = {1, 2, 3, 4};
  ir_graph* graph;
  ir_tensor *x, *w, *y;
  ir_static source = {.rows = 1, .cols = 4, .scale = 1, .constants = weights};
  ir_op* op;
  assert_ok(ir_graph_create("kv_forward", &graph));
  assert_ok(ir_graph_add_tensor(graph, "x", IR_INPUT, IR_F32, 3, dims, &x));
  assert_ok(ir_graph_add_static(graph, "layer0.w", 1, &dims[2], &source, &w));
  assert_ok(ir_graph_add_tensor(graph, "layer0.y", IR_OUTPUT, IR_F32, 3, dims, &y));
  const int32_t inputs[] = {x->id, w->id};
  assert_ok(ir_graph_add_op(graph, IR_MULTIPLY, "layer0.y", inputs, 2, y->id, &op));
  return graph;
}

static void a_program_names_handles_and_structure(void** state) {
  (void)state;
  ir_graph* graph = small_graph();
  text out = {0};
  json_document* document;
  json_value node;
  assert_ok(etrecord_program(graph, &out));
  assert_ok(json_parse(out.data, out.length, "program", &document));
  json_value inside = json_get(json_get(json_root(document), "graph_module"), "graph");
  assert_int_equal(json_count(json_get(inside, "inputs")), 2); /* the static is an input */
  json_iterator nodes = json_iterate(json_get(inside, "nodes"));
  assert_true(json_next(&nodes, NULL, &node));
  assert_true(text_view_equal_cstr(json_string(json_get(node, "name")), "layer0_y"));
  assert_true(text_view_equal_cstr(json_string(json_get(node, "target")), "torch.ops.aten.mul.Tensor"));
  assert_true(text_view_equal_cstr(json_string(json_get(json_get(node, "metadata"), "debug_handle")), "1"));
  assert_false(json_next(&nodes, NULL, &node));
  assert_int_equal(json_count(json_get(json_get(json_get(inside, "tensor_values"), "layer0_y"), "sizes")), 3);
  json_free(document);
  text_deinit(&out);
  ir_graph_destroy(graph);
}

static void every_failed_allocation_is_a_status_and_leaves_no_file(void** state) {
  (void)state;
  ir_graph* graph = small_graph();
  const ir_graph* graphs[] = {graph};
  uint64_t n = 1;
  for (; n < 10000; n++) {
    mem_inject_failure(n);
    genai_status* status = etrecord_write(scratch_path("a.etrecord"), graphs, 1);
    mem_inject_failure(0);
    if (!status) break;
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
    assert_false(file_exists(scratch_path("a.etrecord")));
  }
  assert_in_range(n, 10, 9999);
  assert_int_equal(unlink(scratch_path("a.etrecord")), 0);
  ir_graph_destroy(graph);
  assert_fails(etrecord_write(scratch_path("b.etrecord"), graphs, 0), GENAI_ERROR_INVALID_ARGUMENT, "at least one graph");
  assert_fails(etrecord_write(scratch_path("none/b.etrecord"), graphs, 1), GENAI_ERROR_NOT_FOUND, "none/b.etrecord");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(checksum),
      cmocka_unit_test(an_archive_byte_by_byte),
      cmocka_unit_test(a_program_names_handles_and_structure),
      cmocka_unit_test(every_failed_allocation_is_a_status_and_leaves_no_file),
  };
  return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
