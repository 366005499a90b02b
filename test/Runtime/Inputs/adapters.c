/* Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* adapters LIBRARY TEXT: the greedy text of each adapter, and of none, from a
 * session, from a set that computes all of them in one step, and from
 * attune_generate. */

#include "attune/Runtime/attune.h"

#include <dlfcn.h>
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

enum { new_tokens = 12, most_adapters = 4, longest = 64 };

static int64_t best(const float *logits, int64_t vocabulary) {
  int64_t found = 0;
  for (int64_t id = 1; id < vocabulary; ++id)
    if (logits[id] > logits[found])
      found = id;
  return found;
}

static int64_t heard[new_tokens];
static int num_heard;
static int hear(void *context, int64_t id) {
  heard[num_heard++] = id;
  return 1;
}

int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library) {
    puts(dlerror());
    return 1;
  }
  const attune_model_descriptor *model = dlsym(library, "attune_model");
  LOAD(attune_last_error);
  LOAD(attune_open);
  LOAD(attune_close);
  LOAD(attune_encode);
  LOAD(attune_generate);
  LOAD(attune_num_adapters);
  LOAD(attune_adapter_name);
  LOAD(attune_choose_adapter);
  LOAD(attune_session_open);
  LOAD(attune_session_step);
  LOAD(attune_session_logits);
  LOAD(attune_session_vocabulary);
  LOAD(attune_session_reset);
  LOAD(attune_session_choose_adapter);
  LOAD(attune_session_close);
  LOAD(attune_set_open);
  LOAD(attune_set_append);
  LOAD(attune_set_step);
  LOAD(attune_set_logits);
  LOAD(attune_set_choose_adapter);
  LOAD(attune_set_close);

  attune_instance *instance = attune_open_(model, NULL);
  CHECK(instance);
  int64_t prompt[longest];
  int64_t length =
      attune_encode_(instance, argv[2], strlen(argv[2]), prompt, longest);
  CHECK(length > 0 && length <= longest);
  uint32_t count = attune_num_adapters_(instance);
  CHECK(count < most_adapters && !attune_adapter_name_(instance, count));
  const char *names[most_adapters] = {NULL};
  for (uint32_t i = 0; i < count; ++i)
    names[i + 1] = attune_adapter_name_(instance, i);

  /* Sessions, one after the other. */
  int64_t texts[most_adapters][new_tokens];
  attune_session *session = attune_session_open_(instance, 1, longest);
  CHECK(session);
  int64_t vocabulary = attune_session_vocabulary_(session);
  for (uint32_t i = 0; i <= count; ++i) {
    attune_session_reset_(session);
    CHECK(attune_session_choose_adapter_(session, names[i]) == ATTUNE_OK);
    CHECK(attune_session_step_(session, prompt, length) == ATTUNE_OK);
    printf("%s", names[i] ? names[i] : "none");
    for (int t = 0; t < new_tokens; ++t) {
      int64_t id = best(attune_session_logits_(session), vocabulary);
      printf("%c%lld", t ? ',' : ' ', (long long)id);
      texts[i][t] = id;
      CHECK(attune_session_step_(session, &id, 1) == ATTUNE_OK);
    }
    puts("");
  }
  CHECK(attune_session_choose_adapter_(session, NULL) == ATTUNE_BAD_CALL);
  puts(attune_last_error_());
  attune_session_reset_(session);
  CHECK(attune_session_choose_adapter_(session, "owl") == ATTUNE_BAD_INPUT);
  puts(attune_last_error_());
  attune_session_close_(session);

  /* A sequence of a set for each, in one step. */
  attune_set *set = attune_set_open_(instance, count + 1, longest);
  CHECK(set);
  uint32_t all[most_adapters];
  int64_t ids[most_adapters];
  for (uint32_t i = 0; i <= count; ++i) {
    all[i] = i;
    CHECK(attune_set_choose_adapter_(set, i, names[i]) == ATTUNE_OK);
    CHECK(attune_set_append_(set, i, prompt, length) == ATTUNE_OK);
  }
  for (int t = 0; t < new_tokens; ++t) {
    for (uint32_t i = 0; i <= count; ++i) {
      ids[i] = best(attune_set_logits_(set, i), vocabulary);
      CHECK(ids[i] == texts[i][t]);
    }
    CHECK(attune_set_step_(set, all, ids, count + 1) == ATTUNE_OK);
  }
  puts("ok set");
  attune_set_close_(set);

  for (uint32_t i = 0; i <= count; ++i) {
    attune_generate_options options = {sizeof options};
    options.max_new_tokens = new_tokens;
    options.ignore_eos = 1;
    num_heard = 0;
    CHECK(attune_choose_adapter_(instance, names[i]) == ATTUNE_OK);
    CHECK(attune_generate_(instance, prompt, length, &options, hear, NULL) ==
          ATTUNE_OK);
    CHECK(num_heard == new_tokens &&
          memcmp(heard, texts[i], sizeof heard) == 0);
  }
  puts("ok generate");
  attune_close_(instance);
  return 0;
}
