/* Tiny tokenizers of every kind against the reference libraries: tests/tools/make_tokenizer_small.py trained them and recorded ids, pieces
 * and texts (Hugging Face tokenizers, sentencepiece, tiktoken). No third-party file is needed. */
#include "recorded_cases.h"
#include "tokenizer/load_json.h"

static json_document* open_small(const char* name) {
  char path[256];
  snprintf(path, sizeof path, "tokenizer/small/%s", name);
  json_document* document;
  assert_ok(json_parse_file(test_data(path), 1 << 22, &document));
  return document;
}

#define for_each_entry(entry, document) \
  for (json_iterator entries_ = json_iterate(json_get(json_root(document), "entries")); json_next(&entries_, NULL, &(entry));)

static void tokenizer_json_gives_the_same_ids(void** state) {
  (void)state;
  json_document* document = open_small("tokenizers.json");
  size_t tokenizers = 0;
  json_value entry = {0};
  for_each_entry(entry, document) {
    text_view name = json_string(json_get(entry, "name"));
    print_message("%.*s\n", (int)name.length, name.data);
    tokenizer* self;
    assert_ok(tokenizer_load_json(json_get(entry, "json"), "small", &self));
    assert_in_range(check_cases(self, entry, (tokenizer_encode_options){.parse_special = true}), 50, 1000);
    /* What the post-processor puts around a text. */
    token_list ids = {0};
    assert_ok(tokenizer_encode(self, "Hello", 5, (tokenizer_encode_options){.add_special = true, .parse_special = true}, &ids));
    check_ids((text_view){"Hello", 5}, &ids, json_get(entry, "hello"));
    token_list_deinit(&ids);
    tokenizer_close(self);
    tokenizers++;
  }
  json_free(document);
  assert_in_range(tokenizers, 16, 100);
}

/* Ids and, where recorded, the text they decode to. */
static void check_file(const char* path, json_value entry) {
  tokenizer* self;
  assert_ok(tokenizer_open(path, &self));
  token_list ids = {0};
  size_t count = 0;
  json_iterator at = json_iterate(json_get(entry, "cases"));
  for (json_value one; json_next(&at, NULL, &one); count++) {
    json_value parts[3] = {{0}};
    size_t n = 0;
    json_iterator part = json_iterate(one);
    while (n < 3 && json_next(&part, NULL, &parts[n])) n++;
    text_view input = json_string(parts[0]);
    ids.count = 0;
    assert_ok(tokenizer_encode(self, input.data, input.length, (tokenizer_encode_options){.parse_special = true}, &ids));
    check_ids(input, &ids, parts[1]);
    if (n == 3) check_decode(self, &ids, json_string(parts[2]));
  }
  assert_in_range(count, 50, 1000);
  token_list_deinit(&ids);
  tokenizer_close(self);
}

static void sentencepiece_models_give_the_same_ids(void** state) {
  (void)state;
  json_document* document = open_small("sentencepiece.json");
  size_t models = 0;
  json_value entry = {0};
  for_each_entry(entry, document) {
    text_view name = json_string(json_get(entry, "name"));
    print_message("%.*s\n", (int)name.length, name.data);
    char path[256];
    snprintf(path, sizeof path, "tokenizer/small/%.*s.model", (int)name.length, name.data);
    check_file(test_data(path), entry);
    models++;
  }
  json_free(document);
  assert_int_equal(models, 6);
}

static void ranked_files_give_the_same_ids(void** state) {
  (void)state;
  json_document* document = open_small("ranked.json");
  const char* const paths[] = {"tokenizer/small/tiktoken/tokenizer.model", "tokenizer/small/tekken.json"};
  size_t i = 0;
  json_value entry = {0};
  for_each_entry(entry, document) check_file(test_data(paths[i++]), entry);
  json_free(document);
  assert_int_equal(i, 2);
}

static split_behavior behavior_of(text_view name) {
  static const char* const names[] = {"Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"};
  int i = 0;
  while (!text_view_equal_cstr(name, names[i])) i++;
  return (split_behavior)i;
}

typedef struct piece_check {
  json_iterator want;
  size_t count;
} piece_check;

static genai_status* check_piece(void* user, text_view piece) {
  piece_check* check = user;
  json_value want;
  assert_true(json_next(&check->want, NULL, &want));
  text_view expected = json_string(want);
  if (!text_view_equal(piece, expected)) {
    fail_msg("piece %zu is \"%.*s\", expected \"%.*s\"", check->count, (int)piece.length, piece.data, (int)expected.length, expected.data);
  }
  check->count++;
  return NULL;
}

static void check_splits(const segmenter* segment, const unicode_classes* classes, json_value cases) {
  segmenter_scratch scratch;
  assert_ok(segmenter_scratch_init(&scratch, segment));
  json_iterator at = json_iterate(cases);
  for (json_value one; json_next(&at, NULL, &one);) {
    json_iterator part = json_iterate(one);
    json_value input = {0}, pieces = {0};
    assert_true(json_next(&part, NULL, &input) && json_next(&part, NULL, &pieces));
    piece_check check = {.want = json_iterate(pieces)};
    assert_ok(segmenter_run(segment, classes, &scratch, json_string(input), true, check_piece, &check));
    assert_int_equal(check.count, json_count(pieces));
  }
  segmenter_scratch_deinit(&scratch);
}

static void splits_are_those_of_the_reference(void** state) {
  (void)state;
  unicode_classes classes;
  assert_ok(unicode_classes_init(&classes));
  json_document* document = open_small("splits.json");
  size_t scanners = 0, expressions = 0;
  json_value entry = {0};
  for_each_entry(entry, document) {
    text_view pattern = json_string(json_get(entry, "regex"));
    split_behavior behavior = behavior_of(json_string(json_get(entry, "behavior")));
    bool invert = json_bool(json_get(entry, "invert"), false);
    segmenter segment = {0};
    assert_ok(segmenter_add_regex(&segment, pattern, behavior, invert));
    bool scanned = segment.steps[0].kind == SEGMENT_SCANNER;
    check_splits(&segment, &classes, json_get(entry, "cases"));
    segmenter_deinit(&segment);
    *(scanned ? &scanners : &expressions) += 1;
    if (!scanned) continue;
    /* The general way must come to the same. */
    segment_step* step = segmenter_add(&segment, SEGMENT_REGEX);
    assert_non_null(step);
    assert_ok(regex_compile(pattern, &step->expression));
    check_splits(&segment, &classes, json_get(entry, "cases"));
    segmenter_deinit(&segment);
  }
  json_free(document);
  unicode_classes_deinit(&classes);
  assert_int_equal(scanners, 9);
  assert_in_range(expressions, 30, 100);
}

static void normal_forms_are_those_of_the_reference(void** state) {
  (void)state;
  unicode_classes classes;
  assert_ok(unicode_classes_init(&classes));
  json_document* document = open_small("normalizers.json");
  text out = {0}, spare = {0};
  size_t kinds = 0;
  json_value entry = {0};
  for_each_entry(entry, document) {
    normalizer normalize = {0};
    assert_ok(load_json_normalizer(json_get(entry, "json"), "small", &normalize));
    json_iterator at = json_iterate(json_get(entry, "cases"));
    for (json_value one; json_next(&at, NULL, &one);) {
      json_iterator part = json_iterate(one);
      json_value input = {0}, want = {0};
      assert_true(json_next(&part, NULL, &input) && json_next(&part, NULL, &want));
      text_view result;
      assert_ok(normalizer_run(&normalize, &classes, json_string(input), &out, &spare, &result));
      if (!text_view_equal(result, json_string(want))) {
        fail_msg("normalizer %zu of \"%.*s\": \"%.*s\"", kinds, (int)json_string(input).length, json_string(input).data, (int)result.length,
                 result.data);
      }
    }
    normalizer_deinit(&normalize);
    kinds++;
  }
  text_deinit(&out);
  text_deinit(&spare);
  json_free(document);
  unicode_classes_deinit(&classes);
  assert_int_equal(kinds, 13);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tokenizer_json_gives_the_same_ids),       cmocka_unit_test(sentencepiece_models_give_the_same_ids),
      cmocka_unit_test(ranked_files_give_the_same_ids),          cmocka_unit_test(splits_are_those_of_the_reference),
      cmocka_unit_test(normal_forms_are_those_of_the_reference),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
