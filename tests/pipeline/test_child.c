/* Work in a child process: its status and payload come back, whatever becomes of it. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "pipeline/child.h"
#include "support.h"

static genai_status* give_payload(void* user, text* payload) {
  return text_printf(payload, "from %s", (const char*)user);
}

static genai_status* give_much(void* user, text* payload) {
  (void)user;
  for (int i = 0; i < 100000; i++) GENAI_TRY(text_printf(payload, "%08d", i));
  return NULL;
}

static genai_status* refuse(void* user, text* payload) {
  (void)user, (void)payload;
  return genai_status_create(GENAI_ERROR_BAD_FILE, "the child says no");
}

static genai_status* die(void* user, text* payload) {
  (void)user, (void)payload;
  raise(SIGSEGV);
  return NULL;
}

static genai_status* leave(void* user, text* payload) {
  (void)user, (void)payload;
  _exit(3);
}

static genai_status* sleep_long(void* user, text* payload) {
  (void)user, (void)payload;
  sleep(60);
  return NULL;
}

static genai_status* print_much(void* user, text* payload) {
  (void)user;
  printf("this must not appear\n");
  fprintf(stderr, "nor this\n");
  log_write(LOG_ERROR, "nor this line");
  fflush(stdout);
  return text_append_cstr(payload, "quiet");
}

static void status_and_payload_come_back(void** state) {
  (void)state;
  child_process child;
  text payload = {0};
  assert_ok(child_start(give_payload, "the test", &child));
  assert_ok(child_wait(&child, NULL, NULL, &payload));
  assert_string_equal(payload.data, "from the test");
  assert_int_equal(child.id, 0);
  text_clear(&payload);
  assert_ok(child_start(give_much, NULL, &child)); /* more than a pipe holds */
  assert_ok(child_wait(&child, NULL, NULL, &payload));
  assert_int_equal(payload.length, 800000);
  assert_string_equal(payload.data + 800000 - 8, "00099999");
  text_deinit(&payload);
}

static void a_failing_child_gives_its_kind_and_text(void** state) {
  (void)state;
  child_process child;
  text payload = {0};
  assert_ok(child_start(refuse, NULL, &child));
  assert_fails(child_wait(&child, NULL, NULL, &payload), GENAI_ERROR_BAD_FILE, "the child says no");
}

static void a_child_that_dies_is_an_error(void** state) {
  (void)state;
  child_process child;
  text payload = {0};
  assert_ok(child_start(die, NULL, &child));
  assert_fails(child_wait(&child, NULL, NULL, &payload), GENAI_ERROR_VENDOR, ""); /* a sanitizer may turn the signal into a code */
  assert_ok(child_start(leave, NULL, &child));
  assert_fails(child_wait(&child, NULL, NULL, &payload), GENAI_ERROR_VENDOR, "code 3");
}

static void cancelling_kills_the_child(void** state) {
  (void)state;
  child_process child;
  cancel_token token;
  text payload = {0};
  atomic_init(&token.requested, true);
  assert_ok(child_start(sleep_long, NULL, &child));
  pid_t id = child.id;
  double started = clock_seconds();
  assert_fails(child_wait(&child, &token, NULL, &payload), GENAI_ERROR_CANCELLED, "");
  assert_true(clock_seconds() - started < 5);
  assert_int_equal(kill(id, 0), -1); /* gone and reaped */
  assert_ok(child_start(sleep_long, NULL, &child));
  child_stop(&child);
  child_stop(&child); /* a stopped one is accepted */
}

static void a_child_never_prints(void** state) {
  (void)state;
  int saved[2] = {dup(1), dup(2)};
  char path[] = "/tmp/genai-child-XXXXXX";
  int file = mkstemp(path);
  child_process child;
  text payload = {0};
  fflush(stdout);
  dup2(file, 1);
  dup2(file, 2);
  genai_status* status = child_start(print_much, NULL, &child);
  if (!status) status = child_wait(&child, NULL, NULL, &payload);
  dup2(saved[0], 1);
  dup2(saved[1], 2);
  off_t size = lseek(file, 0, SEEK_END);
  close(saved[0]);
  close(saved[1]);
  close(file);
  unlink(path);
  assert_ok(status);
  assert_string_equal(payload.data, "quiet");
  assert_int_equal(size, 0);
  text_deinit(&payload);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(status_and_payload_come_back),  cmocka_unit_test(a_failing_child_gives_its_kind_and_text),
      cmocka_unit_test(a_child_that_dies_is_an_error), cmocka_unit_test(cancelling_kills_the_child),
      cmocka_unit_test(a_child_never_prints),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
