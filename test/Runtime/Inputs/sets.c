/* Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* sets LIBRARY: sets of sequences against sessions, which compute each alone.
 *
 * Several threads use one set at a time: each its own sequences, and all step
 * whatever they have. */

#include "attune/Runtime/attune.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOAD(name) __typeof__(name) *name##_ = dlsym(library, #name)
#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      printf("line %d: %s: %s\n", __LINE__, #condition, attune_last_error_()); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

enum { sequences = 8, threads = 4, rounds = 12, longest = 64 };

static __typeof__(attune_last_error) *attune_last_error_;
static __typeof__(attune_set_append) *append;
static __typeof__(attune_set_step) *step;
static __typeof__(attune_set_fork) *fork_;
static __typeof__(attune_set_save) *save;
static __typeof__(attune_set_restore) *restore;
static __typeof__(attune_set_rewind) *rewind_;
static __typeof__(attune_set_logits) *logits;
static __typeof__(attune_set_length) *length;
static __typeof__(attune_session_step) *alone;
static __typeof__(attune_session_logits) *logits_alone;
static __typeof__(attune_session_reset) *reset;

static attune_set *set;
static attune_session *session;
static int64_t vocabulary, most;
static int64_t texts[sequences][longest];
static int counts[sequences];

static int64_t next(int sequence) {
  int i = counts[sequence];
  int64_t id = (sequence * 31 + i * i * 7 + i) % most;
  texts[sequence][counts[sequence]++] = id;
  return id;
}

static void read_prompt(int sequence, int tokens) {
  int64_t ids[longest];
  for (int i = 0; i < tokens; ++i)
    ids[i] = next(sequence);
  CHECK(append(set, sequence, ids, tokens) == ATTUNE_OK);
}

/* The prompt in one step, then token by token, as the set did. */
static void compare(int sequence, int prompt) {
  reset(session);
  CHECK(alone(session, texts[sequence], prompt) == ATTUNE_OK);
  for (int i = prompt; i < counts[sequence]; ++i)
    CHECK(alone(session, &texts[sequence][i], 1) == ATTUNE_OK);
  CHECK(length(set, sequence) == counts[sequence]);
  CHECK(memcmp(logits_alone(session), logits(set, sequence),
               vocabulary * sizeof(float)) == 0);
}

static const int prompts[sequences] = {3, 20, 1, 7, 16, 2, 31, 5};

/* Reads two prompts and steps them, while other threads do the same. */
static void *use(void *argument) {
  int first = 2 * (int)(intptr_t)argument;
  read_prompt(first, prompts[first]);
  read_prompt(first + 1, prompts[first + 1]);
  for (int i = 0; i < rounds; ++i) {
    uint32_t members[] = {first, first + 1};
    int64_t ids[] = {next(first), next(first + 1)};
    CHECK(step(set, members, ids, i % 3 == 0 ? 1 : 2) == ATTUNE_OK);
    if (i % 3 == 0)
      --counts[first + 1];
  }
  return NULL;
}

static void all_at_once(void) {
  pthread_t pool[threads];
  for (intptr_t i = 0; i < threads; ++i)
    CHECK(pthread_create(&pool[i], NULL, use, (void *)i) == 0);
  for (int i = 0; i < threads; ++i)
    pthread_join(pool[i], NULL);
  for (int i = 0; i < sequences; ++i)
    compare(i, prompts[i]);
  uint32_t members[sequences];
  int64_t ids[sequences];
  for (int i = 0; i < sequences; ++i) {
    members[i] = sequences - 1 - i;
    ids[i] = next(sequences - 1 - i);
  }
  CHECK(step(set, members, ids, sequences) == ATTUNE_OK);
  for (int i = 0; i < sequences; ++i)
    compare(i, prompts[i]);
  puts("ok all_at_once");
}

static void copy_text(int from, int to) {
  memcpy(texts[to], texts[from], sizeof(texts[from]));
  counts[to] = counts[from];
}

static void forks(void) {
  CHECK(fork_(set, 1, 4) == ATTUNE_OK);
  copy_text(1, 4);
  compare(4, prompts[1]);
  uint32_t members[] = {1, 4};
  int64_t ids[] = {next(1), 2};
  texts[4][counts[4]++] = 2;
  CHECK(step(set, members, ids, 2) == ATTUNE_OK);
  compare(1, prompts[1]);
  compare(4, prompts[1]);
  CHECK(fork_(set, 2, 2) == ATTUNE_OK);
  compare(2, prompts[2]);
  puts("ok forks");
}

static void saves(void) {
  int64_t bytes = save(set, 6, NULL, 0);
  CHECK(bytes > vocabulary * (int64_t)sizeof(float));
  char *saved = malloc(bytes);
  CHECK(save(set, 6, saved, bytes) == bytes);
  CHECK(restore(set, 0, saved, bytes) == ATTUNE_OK);
  copy_text(6, 0);
  compare(0, prompts[6]);
  uint32_t members[] = {6, 0};
  int64_t ids[] = {next(6), next(0)};
  CHECK(step(set, members, ids, 2) == ATTUNE_OK);
  compare(0, prompts[6]);
  CHECK(restore(set, 0, saved, bytes - 1) == ATTUNE_BAD_INPUT);
  puts(attune_last_error_());
  CHECK(restore(set, 0, saved, 5) == ATTUNE_BAD_INPUT);
  puts(attune_last_error_());
  saved[8] ^= 1; /* the model */
  CHECK(restore(set, 0, saved, bytes) == ATTUNE_BAD_INPUT);
  puts(attune_last_error_());
  saved[0] ^= 1;
  CHECK(restore(set, 0, saved, bytes) == ATTUNE_BAD_INPUT);
  puts(attune_last_error_());
  free(saved);
  puts("ok saves");
}

static void mistakes(void) {
  uint32_t twice[] = {3, 3}, none[] = {sequences};
  int64_t ids[] = {1, 1};
  CHECK(step(set, twice, ids, 2) == ATTUNE_BAD_CALL);
  puts(attune_last_error_());
  CHECK(step(set, none, ids, 1) == ATTUNE_BAD_CALL);
  puts(attune_last_error_());
  CHECK(rewind_(set, 3, 0) == ATTUNE_OK && length(set, 3) == 0);
  CHECK(logits(set, 3) == NULL);
  puts(attune_last_error_());
  while (length(set, 5) < longest)
    CHECK(append(set, 5, ids, 1) == ATTUNE_OK);
  uint32_t full[] = {2, 5};
  CHECK(step(set, full, ids, 2) == ATTUNE_BAD_INPUT);
  puts(attune_last_error_());
  compare(2, prompts[2]);
  puts("ok mistakes");
}

int main(int argc, char **argv) {
  void *library = dlopen(argv[argc - 1], RTLD_NOW);
  if (!library) {
    puts(dlerror());
    return 1;
  }
  LOAD(attune_open);
  LOAD(attune_close);
  LOAD(attune_session_open);
  LOAD(attune_session_close);
  LOAD(attune_set_open);
  LOAD(attune_set_close);
  LOAD(attune_set_vocabulary);
  LOAD(attune_set_steps_together);
  attune_last_error_ = dlsym(library, "attune_last_error");
  append = dlsym(library, "attune_set_append");
  step = dlsym(library, "attune_set_step");
  fork_ = dlsym(library, "attune_set_fork");
  save = dlsym(library, "attune_set_save");
  restore = dlsym(library, "attune_set_restore");
  rewind_ = dlsym(library, "attune_set_rewind");
  logits = dlsym(library, "attune_set_logits");
  length = dlsym(library, "attune_set_length");
  alone = dlsym(library, "attune_session_step");
  logits_alone = dlsym(library, "attune_session_logits");
  reset = dlsym(library, "attune_session_reset");

  attune_open_options options = {sizeof(options), 2};
  attune_instance *model =
      attune_open_(dlsym(library, "attune_model"), &options);
  CHECK(model);
  CHECK(!attune_set_open_(model, 0, longest));
  set = attune_set_open_(model, sequences, longest);
  session = attune_session_open_(model, 1, longest);
  CHECK(set && session);
  vocabulary = attune_set_vocabulary_(set);
  most = vocabulary < 1000 ? vocabulary : 1000;
  printf("together: %d\n", attune_set_steps_together_(set));
  all_at_once();
  forks();
  saves();
  mistakes();
  attune_session_close_(session);
  attune_close_(model);
  CHECK(step(set, (uint32_t[]){0}, (int64_t[]){1}, 1) == ATTUNE_BAD_CALL);
  puts(attune_last_error_());
  attune_set_close_(set);
  return 0;
}
