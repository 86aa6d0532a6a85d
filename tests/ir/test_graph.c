/* Building and changing graphs: names, boundary, removal, listing, allocation failures. */
#include "ir/ir.h"
#include "support.h"

static ir_tensor* add(ir_graph* graph, const char* name, ir_tensor_kind kind) {
  ir_tensor* tensor;
  assert_ok(ir_graph_add_tensor(graph, name, kind, IR_F32, 2, (uint32_t[]){1, 4}, &tensor));
  return tensor;
}

static ir_op* unary(ir_graph* graph, const char* name, ir_tensor* x, ir_tensor* y) {
  ir_op* op;
  assert_ok(ir_graph_add_op(graph, IR_SIGMOID, name, &x->id, 1, y->id, &op));
  return op;
}

/* in -> a -> b -> out, and side = a + b. */
typedef struct chain {
  ir_graph* graph;
  ir_tensor *in, *a, *b, *out, *side;
} chain;

static chain make_chain(void) {
  chain c;
  ir_op* op;
  assert_ok(ir_graph_create("chain", &c.graph));
  c.in = add(c.graph, "in", IR_INPUT);
  c.a = add(c.graph, "a", IR_INTERMEDIATE);
  c.b = add(c.graph, "b", IR_INTERMEDIATE);
  c.side = add(c.graph, "side", IR_INTERMEDIATE);
  c.out = add(c.graph, "out", IR_OUTPUT);
  unary(c.graph, "op_a", c.in, c.a);
  unary(c.graph, "op_b", c.a, c.b);
  assert_ok(ir_graph_add_op(c.graph, IR_ADD, "op_side", (int32_t[]){c.a->id, c.b->id}, 2, c.side->id, &op));
  unary(c.graph, "op_out", c.side, c.out);
  assert_ok(ir_graph_verify(c.graph));
  return c;
}

static void test_names_stay_found_while_tables_grow(void** state) {
  (void)state;
  ir_graph* graph;
  char name[32];
  assert_ok(ir_graph_create("many", &graph));
  ir_tensor* last = add(graph, "t0", IR_INPUT);
  for (int i = 1; i < 1000; ++i) {
    snprintf(name, sizeof name, "t%d", i);
    ir_tensor* next = add(graph, name, IR_INTERMEDIATE);
    unary(graph, name, last, next);
    last = next;
  }
  for (int i = 0; i < 1000; ++i) {
    snprintf(name, sizeof name, "t%d", i);
    assert_non_null(ir_graph_find(graph, name));
    assert_int_equal(ir_graph_find(graph, name)->id, i);
    if (i) assert_int_equal(ir_graph_find_op(graph, name)->id, i - 1);
  }
  assert_null(ir_graph_find(graph, "t1000"));
  assert_null(ir_graph_find_op(graph, "t0"));
  assert_ok(ir_graph_verify(graph));
  ir_graph_destroy(graph);
}

static void test_refusals(void** state) {
  (void)state;
  chain c = make_chain();
  ir_tensor* t;
  ir_op* op;
  uint32_t zero[2] = {1, 0}, huge[5] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, 1, 1};
  assert_fails(ir_graph_add_tensor(c.graph, "a", IR_INTERMEDIATE, IR_F32, 2, (uint32_t[]){1, 4}, &t), GENAI_ERROR_INVALID_ARGUMENT, "a");
  assert_fails(ir_graph_add_tensor(c.graph, "z", IR_INTERMEDIATE, IR_F32, 2, zero, &t), GENAI_ERROR_INVALID_ARGUMENT, "dimension 1 is 0");
  assert_fails(ir_graph_add_tensor(c.graph, "z", IR_INTERMEDIATE, IR_F32, 0, zero, &t), GENAI_ERROR_INVALID_ARGUMENT, "rank 0");
  assert_fails(ir_graph_add_tensor(c.graph, "z", IR_INTERMEDIATE, IR_F32, 6, zero, &t), GENAI_ERROR_INVALID_ARGUMENT, "rank 6");
  assert_fails(ir_graph_add_tensor(c.graph, "z", IR_INTERMEDIATE, IR_F32, 5, huge, &t), GENAI_ERROR_LIMIT, "64 bits");
  assert_fails(ir_graph_add_op(c.graph, IR_TANH, "op_a", &c.in->id, 1, add(c.graph, "n", IR_INTERMEDIATE)->id, &op),
               GENAI_ERROR_INVALID_ARGUMENT, "op_a already");
  assert_fails(ir_graph_add_op(c.graph, IR_TANH, "again", &c.in->id, 1, c.a->id, &op), GENAI_ERROR_INVALID_ARGUMENT, "written elsewhere");
  assert_fails(ir_graph_add_op(c.graph, IR_TANH, "again", &c.in->id, 1, c.in->id, &op), GENAI_ERROR_INVALID_ARGUMENT, "in");
  assert_fails(ir_graph_add_op(c.graph, IR_TANH, "again", (int32_t[]){99}, 1, c.a->id, &op), GENAI_ERROR_INVALID_ARGUMENT, "99");
  float one = 1;
  ir_static source = {.constants = &one, .rows = 1, .cols = 3, .scale = 1};
  assert_fails(ir_graph_add_static(c.graph, "s", 1, (uint32_t[]){4}, &source, &t), GENAI_ERROR_INVALID_ARGUMENT, "do not fill");
  source = (ir_static){.rows = 1, .cols = 4, .scale = 1};
  assert_fails(ir_graph_add_static(c.graph, "s", 1, (uint32_t[]){4}, &source, &t), GENAI_ERROR_INVALID_ARGUMENT, "one of the two");
  assert_fails(ir_graph_mark_output(c.graph, c.in, IR_ROLE_LOGITS, -1), GENAI_ERROR_INVALID_ARGUMENT, "in");
  assert_fails(ir_graph_remove_op(c.graph, 1, c.side->id), GENAI_ERROR_INVALID_ARGUMENT, "before it");
  assert_fails(ir_graph_remove_op(c.graph, 9, c.a->id), GENAI_ERROR_INVALID_ARGUMENT, "9");
  assert_fails(ir_graph_remove_op(c.graph, 3, c.in->id), GENAI_ERROR_INVALID_ARGUMENT, "intermediate");
  ir_graph_destroy(c.graph);
}

static void test_remove_in_the_middle(void** state) {
  (void)state;
  chain c = make_chain();
  assert_ok(ir_graph_remove_op(c.graph, ir_graph_find_op(c.graph, "op_b")->id, c.a->id));
  assert_int_equal(c.graph->n_ops, 3);
  assert_null(ir_graph_find_op(c.graph, "op_b"));
  ir_op* side = ir_graph_find_op(c.graph, "op_side");
  assert_int_equal(side->id, 1);
  assert_int_equal(side->inputs[0], c.a->id);
  assert_int_equal(side->inputs[1], c.a->id);
  assert_int_equal(c.side->producer, 1);
  assert_int_equal(c.out->producer, 2);
  assert_int_equal(c.b->producer, -1);
  assert_ok(ir_graph_verify(c.graph));
  ir_graph_destroy(c.graph);
}

static void test_remove_at_the_boundary(void** state) {
  (void)state;
  chain c = make_chain();
  c.out->role = IR_ROLE_NONE;
  c.out->layer = 3;
  assert_ok(ir_graph_remove_op(c.graph, 3, c.side->id));
  assert_int_equal(c.graph->outputs[0], c.side->id);
  assert_int_equal(c.side->kind, IR_OUTPUT);
  assert_int_equal(c.side->layer, 3);
  assert_int_equal(c.out->kind, IR_INTERMEDIATE);
  assert_ok(ir_graph_verify(c.graph));
  ir_graph_destroy(c.graph);
}

static void test_roles_and_listing(void** state) {
  (void)state;
  chain c = make_chain();
  assert_ok(ir_graph_mark_output(c.graph, c.b, IR_ROLE_NONE, 2));
  assert_int_equal(c.graph->n_outputs, 2);
  assert_int_equal(c.graph->outputs[1], c.b->id);
  assert_ptr_equal(ir_graph_find_role(c.graph, IR_ROLE_NONE, 2), c.b);
  assert_null(ir_graph_find_role(c.graph, IR_ROLE_KEY_IN, 0));
  text listing = {0};
  assert_ok(ir_graph_print(c.graph, &listing));
  assert_non_null(strstr(listing.data, "graph chain: AR 0, context 0, 4 operators, 5 tensors\n"));
  assert_non_null(strstr(listing.data, "side f32[1,4] = ElementWiseAdd(a, b)\n"));
  text_deinit(&listing);
  ir_graph_destroy(c.graph);
}

static genai_status* build_quietly(ir_graph** out) {
  ir_graph* graph;
  GENAI_TRY(ir_graph_create("g", &graph));
  genai_status* status = NULL;
  ir_tensor* last = NULL;
  for (int i = 0; i < 70 && !status; ++i) { /* past the first growth of the tables */
    char name[16];
    snprintf(name, sizeof name, "t%d", i);
    ir_tensor* next = NULL;
    ir_op* op;
    status = ir_graph_add_tensor(graph, name, i ? IR_INTERMEDIATE : IR_INPUT, IR_F32, 1, (uint32_t[]){4}, &next);
    if (!status && i) status = ir_graph_add_op(graph, IR_TANH, name, &last->id, 1, next->id, &op);
    last = next;
  }
  if (!status) status = ir_graph_mark_output(graph, last, IR_ROLE_NONE, -1);
  if (status) {
    ir_graph_destroy(graph);
    return status;
  }
  *out = graph;
  return NULL;
}

static void test_every_allocation_may_fail(void** state) {
  (void)state;
  for (uint64_t nth = 1;; ++nth) {
    ir_graph* graph = NULL;
    mem_inject_failure(nth);
    genai_status* status = build_quietly(&graph);
    mem_inject_failure(0);
    if (!status) {
      assert_ok(ir_graph_verify(graph));
      ir_graph_destroy(graph);
      assert_true(nth > 5);
      return;
    }
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names_stay_found_while_tables_grow),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_remove_in_the_middle),
      cmocka_unit_test(test_remove_at_the_boundary),
      cmocka_unit_test(test_roles_and_listing),
      cmocka_unit_test(test_every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
