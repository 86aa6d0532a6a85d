/* One tokenizer used by several threads at once gives every thread what one alone gets. Under the thread sanitizer this also shows that
 * nothing is shared for writing. */
#include <pthread.h>

#include "small_tokenizers.h"

enum { THREADS = 4, ROUNDS = 40 };

typedef struct job {
  const tokenizer* self;
  const char* input;
  const token_list* want;
  bool equal;
} job;

static void* work(void* user) {
  job* mine = user;
  mine->equal = true;
  for (int round = 0; round < ROUNDS && mine->equal; round++) {
    token_list ids = {0};
    text out = {0};
    genai_status* status =
        tokenizer_encode(mine->self, mine->input, strlen(mine->input), (tokenizer_encode_options){.parse_special = true}, &ids);
    if (!status) status = tokenizer_decode(mine->self, ids.ids, ids.count, true, &out);
    mine->equal = !status && ids.count == mine->want->count && memcmp(ids.ids, mine->want->ids, ids.count * sizeof *ids.ids) == 0;
    genai_status_free(status);
    text_deinit(&out);
    token_list_deinit(&ids);
  }
  return NULL;
}

static void threads_do_not_disturb_each_other(void** state) {
  (void)state;
  static const char* const names[] = {"smollm", "deepseek3", "llama2", "unigram", "added token flags"};
  text input = {0};
  for (int i = 0; i < 40; i++) assert_ok(text_printf(&input, "Round %d: it's \xe6\xbc\xa2\xe5\xad\x97 e\xcc\x81 <l> word\n\n\t", i));
  for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
    tokenizer* self = small_tokenizer(names[n]);
    token_list want = {0};
    assert_ok(tokenizer_encode(self, input.data, input.length, (tokenizer_encode_options){.parse_special = true}, &want));
    pthread_t threads[THREADS];
    job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
      jobs[i] = (job){.self = self, .input = input.data, .want = &want};
      assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
      pthread_join(threads[i], NULL);
      assert_true(jobs[i].equal);
    }
    token_list_deinit(&want);
    tokenizer_close(self);
  }
  text_deinit(&input);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(threads_do_not_disturb_each_other)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
