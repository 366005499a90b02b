/* Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* pictures LIBRARY A.png B.png: pictures in sessions and sets, beside what
 * attune_generate says of them. The library is of the model of
 * test/lib/qwen_vl.py. */

#include "attune/Runtime/attune.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { image = 37, each = 12, new_tokens = 6, vocabulary = 40 };

#define EACH_FUNCTION(use)                                                     \
  use(open) use(close) use(last_error) use(picture_read) use(picture_parse)    \
      use(picture_close) use(picture_token) use(picture_length)                \
          use(picture_tokens) use(generate) use(session_open) use(session_see) \
              use(session_step) use(session_logits) use(session_rewind)        \
                  use(session_close) use(set_open) use(set_see)                \
                      use(set_append) use(set_step) use(set_logits)            \
                          use(set_fork) use(set_close)
#define DECLARE(name) static __typeof__(attune_##name) *name##_;
#define LOAD(name) name##_ = dlsym(library, "attune_" #name);
EACH_FUNCTION(DECLARE)

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      printf("line %d: %s: %s\n", __LINE__, #condition, last_error_());        \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

struct ids {
  int64_t all[200];
  int64_t count;
};

static int take(void *context, int64_t id) {
  struct ids *ids = context;
  ids->all[ids->count++] = id;
  return 1;
}

static int64_t largest(const float *logits) {
  int64_t best = 0;
  CHECK(logits);
  for (int64_t i = 1; i < vocabulary; ++i)
    if (logits[i] > logits[best])
      best = i;
  return best;
}

static struct ids with_pictures(const int64_t *ids, int64_t count) {
  struct ids result = {{0}, 0};
  for (int64_t i = 0; i < count; ++i)
    for (int k = 0; k < (ids[i] == image ? each : 1); ++k)
      take(&result, ids[i]);
  return result;
}

static int same(const struct ids *a, const struct ids *b) {
  return a->count == b->count &&
         memcmp(a->all, b->all, (size_t)a->count * 8) == 0;
}

static struct ids go_on(attune_session *session, struct ids prompt) {
  struct ids result = {{0}, 0};
  CHECK(session_step_(session, prompt.all, prompt.count) == ATTUNE_OK);
  while (1) {
    take(&result, largest(session_logits_(session)));
    if (result.count == new_tokens)
      return result;
    CHECK(session_step_(session, &result.all[result.count - 1], 1) ==
          ATTUNE_OK);
  }
}

static struct ids generate_about(attune_instance *model, const int64_t *ids,
                                 int64_t count, attune_picture *const *pictures,
                                 int64_t num_pictures) {
  attune_generate_options options = {sizeof(options)};
  struct ids result = {{0}, 0};
  options.max_new_tokens = new_tokens;
  options.ignore_eos = 1;
  options.pictures = pictures;
  options.num_pictures = num_pictures;
  CHECK(generate_(model, ids, count, &options, take, &result) == ATTUNE_OK);
  return result;
}

static const int64_t prompt[] = {5, image, 7, 9}, second[] = {image, 8};

int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW);
  if (argc != 4 || !library)
    return puts(dlerror()), 1;
  EACH_FUNCTION(LOAD)
  const attune_model_descriptor *descriptor = dlsym(library, "attune_model");
  attune_instance *model = open_(descriptor, NULL);
  CHECK(model && picture_token_(model) == image &&
        picture_length_(model) == each);

  /* From a file, and from memory. */
  static char bytes[65536];
  FILE *file = fopen(argv[3], "rb");
  size_t size = file ? fread(bytes, 1, sizeof(bytes), file) : 0;
  attune_picture *pictures[] = {picture_read_(model, argv[2]),
                                picture_parse_(model, bytes, size)};
  CHECK(pictures[0] && pictures[1]);
  CHECK(picture_tokens_(pictures[0]) == each && picture_tokens_(NULL) == -1);
  struct ids about[] = {generate_about(model, prompt, 4, &pictures[0], 1),
                        generate_about(model, prompt, 4, &pictures[1], 1)};
  CHECK(!same(&about[0], &about[1]));
  puts("ok generate");

  struct ids whole = with_pictures(prompt, 4), next = with_pictures(second, 2);
  attune_session *session = session_open_(model, 1, 0);
  CHECK(session && session_see_(session, pictures, 1) == ATTUNE_OK);
  struct ids said = go_on(session, whole);
  CHECK(same(&said, &about[0]));
  /* Another picture comes behind the first, and not instead of it. */
  CHECK(session_see_(session, &pictures[1], 1) == ATTUNE_BAD_CALL);
  puts(last_error_());
  CHECK(session_see_(session, NULL, 0) == ATTUNE_BAD_CALL);
  CHECK(session_rewind_(session, whole.count) == ATTUNE_OK);
  CHECK(session_see_(session, pictures, 2) == ATTUNE_OK);
  said = go_on(session, next);
  int64_t both[] = {5, image, 7, 9, image, 8};
  struct ids wanted = generate_about(model, both, 6, pictures, 2);
  CHECK(same(&said, &wanted));
  CHECK(session_rewind_(session, 0) == ATTUNE_OK);
  CHECK(session_see_(session, &pictures[1], 1) == ATTUNE_OK);
  said = go_on(session, whole);
  CHECK(same(&said, &about[1]));
  /* In each row the same. */
  attune_session *rows = session_open_(model, 2, 0);
  int64_t twice[400];
  for (int64_t i = 0; i < 2 * whole.count; ++i)
    twice[i] = whole.all[i % whole.count];
  CHECK(rows && session_see_(rows, pictures, 1) == ATTUNE_OK);
  CHECK(session_step_(rows, twice, whole.count) == ATTUNE_OK);
  for (int row = 0; row < 2; ++row)
    CHECK(largest(session_logits_(rows) + row * vocabulary) == about[0].all[0]);
  session_close_(rows);
  puts("ok session");

  attune_set *set = set_open_(model, 3, 0);
  const uint32_t numbers[] = {0, 1, 2};
  struct ids texts[3] = {{{0}, 0}};
  for (uint32_t i = 0; i < 2; ++i) {
    CHECK(set_see_(set, i, &pictures[i], 1) == ATTUNE_OK);
    CHECK(set_append_(set, i, whole.all, whole.count) == ATTUNE_OK);
  }
  CHECK(set_fork_(set, 1, 2) == ATTUNE_OK);
  while (texts[0].count < new_tokens) {
    int64_t ids[3];
    for (uint32_t i = 0; i < 3; ++i)
      take(&texts[i], ids[i] = largest(set_logits_(set, i)));
    CHECK(set_step_(set, numbers, ids, 3) == ATTUNE_OK);
  }
  for (int i = 0; i < 3; ++i)
    CHECK(same(&texts[i], &about[i > 0]));
  puts("ok set");

  CHECK(!picture_parse_(model, "GIF89a", 6));
  puts(last_error_());
  CHECK(!picture_read_(model, "none.png") && !picture_read_(model, NULL));
  attune_generate_options options = {sizeof(options)};
  options.pictures = pictures;
  options.num_pictures = 2;
  CHECK(generate_(model, prompt, 4, &options, take, &said) == ATTUNE_BAD_INPUT);
  puts(last_error_());
  attune_instance *other = open_(descriptor, NULL);
  attune_picture *alien = picture_read_(other, argv[2]);
  options.pictures = &alien;
  options.num_pictures = 1;
  CHECK(generate_(model, prompt, 4, &options, take, &said) == ATTUNE_BAD_CALL);
  puts(last_error_());
  close_(other);
  CHECK(generate_(model, prompt, 4, &options, take, &said) == ATTUNE_BAD_CALL);
  picture_close_(alien);
  alien = NULL;
  CHECK(generate_(model, prompt, 4, &options, take, &said) == ATTUNE_BAD_CALL);
  /* Closed, while sequences still see it. */
  picture_close_(pictures[0]);
  CHECK(set_append_(set, 0, &texts[0].all[0], 1) == ATTUNE_OK);
  close_(model);
  picture_close_(pictures[1]);
  session_close_(session);
  set_close_(set);
  puts("ok errors");
  return 0;
}
