/* The public side of a tokenizer. The tokenizer of these tests has one token for each letter, so that the ids are known; whether ids are right in
 * general, tests/tokenizer and tests/interop compare with the reference libraries. */
#include "base/memory.h"
#include "genai/tokenizer.h"
#include "model_copy.h"
#include "stubs.h"

static genai_object* open_letters(void) {
  char path[128];
  genai_object* words;
  snprintf(path, sizeof path, "%s/tokenizer.json", scratch_directory());
  write_letter_tokenizer(path); /* a is 3, b is 4 ..., the space 40 */
  assert_ok(genai_tokenizer_open(path, &words));
  return words;
}

static void text_becomes_ids_and_ids_text(void** state) {
  (void)state;
  static const int32_t expected[] = {3, 4, 40, 28};
  genai_object* words = open_letters();
  int32_t* ids;
  size_t count;
  char* back;
  assert_ok(genai_tokenizer_encode(words, "ab z", true, &ids, &count));
  assert_int_equal(count, 4);
  assert_memory_equal(ids, expected, sizeof expected);
  assert_ok(genai_tokenizer_decode(words, ids, count, &back));
  assert_string_equal(back, "ab z");
  genai_free(back);
  genai_free(ids);
  assert_ok(genai_tokenizer_encode(words, "", false, &ids, &count));
  assert_int_equal(count, 0);
  assert_ok(genai_tokenizer_decode(words, ids, 0, &back));
  assert_string_equal(back, "");
  genai_free(back);
  genai_free(ids);
  const int32_t outside[] = {320};
  assert_fails(genai_tokenizer_decode(words, outside, 1, &back), GENAI_ERROR_INVALID_ARGUMENT, "320");
  genai_object_release(words);
}

static void a_chat_takes_the_form_of_its_template(void** state) {
  (void)state;
  static const char source[] =
      "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% endfor %}{% if add_generation_prompt %}a{% endif %}";
  static const int32_t with_system[] = {21, 27, 23, 26, 3}, without[] = {23, 26, 3}; /* s y u x a, u x a */
  genai_object* words = open_letters();
  int32_t* ids;
  size_t count;
  assert_ok(genai_tokenizer_encode_chat(words, source, "y", "x", &ids, &count));
  assert_int_equal(count, 5);
  assert_memory_equal(ids, with_system, sizeof with_system);
  genai_free(ids);
  assert_ok(genai_tokenizer_encode_chat(words, source, NULL, "x", &ids, &count));
  assert_int_equal(count, 3);
  assert_memory_equal(ids, without, sizeof without);
  genai_free(ids);
  assert_fails(genai_tokenizer_encode_chat(words, "{% if %}", NULL, "x", &ids, &count), GENAI_ERROR_BAD_FILE, "");
  genai_object_release(words);
}

static void another_object_is_refused(void** state) {
  (void)state;
  genai_object* stranger;
  int32_t* ids;
  size_t count;
  char* back;
  assert_ok(genai_object_create(&stub_tokenizer_type, NULL, &stranger));
  assert_fails(genai_tokenizer_encode(stranger, "a", false, &ids, &count), GENAI_ERROR_INVALID_ARGUMENT, "\"stub.tokenizer\"");
  assert_fails(genai_tokenizer_encode(NULL, "a", false, &ids, &count), GENAI_ERROR_INVALID_ARGUMENT, "executorch.tokenizer");
  assert_fails(genai_tokenizer_decode(stranger, NULL, 0, &back), GENAI_ERROR_INVALID_ARGUMENT, "\"stub.tokenizer\"");
  assert_int_equal(genai_tokenizer_stop_ids(stranger, NULL, 0), 0);
  assert_fails(genai_tokenizer_open("/nonexistent", &stranger), GENAI_ERROR_NOT_FOUND, "/nonexistent");
  genai_object_release(stranger);
}

static void every_failed_allocation_is_an_error(void** state) {
  (void)state;
  genai_object* words = open_letters();
  int32_t* ids;
  size_t count;
  for (uint64_t n = 1;; n++) {
    uint64_t before = mem_allocation_count();
    mem_inject_failure(n);
    genai_status* status = genai_tokenizer_encode_chat(words, "{{ messages[0].content }}", NULL, "abc", &ids, &count);
    mem_inject_failure(0);
    if (!status) {
      genai_free(ids);
      if (mem_allocation_count() - before < n) break; /* none was left to fail */
    }
    genai_status_free(status);
  }
  genai_object_release(words);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_becomes_ids_and_ids_text),
      cmocka_unit_test(a_chat_takes_the_form_of_its_template),
      cmocka_unit_test(another_object_is_refused),
      cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
