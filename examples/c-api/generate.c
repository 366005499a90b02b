/*===- generate.c - A program around a compiled model ---------------------===*\
|*
|* Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* generate LIBRARY PROMPT [NEW_TOKENS [DRAFT]]: continues a text with a
 * language model compiled to a shared library, then shows the likeliest next
 * tokens of the prompt by hand. DRAFT is the library of a smaller model that
 * guesses tokens, which takes fewer steps for the same text. The library is
 * loaded at run time; linking with it works the same way. */

#include "attune/Runtime/attune.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions of attune.h that this program calls, out of the library. */
static __typeof__(attune_open) *open_model;
static __typeof__(attune_close) *close_model;
static __typeof__(attune_last_error) *last_error;
static __typeof__(attune_encode) *encode;
static __typeof__(attune_decode) *decode;
static __typeof__(attune_load_draft) *load_draft;
static __typeof__(attune_generate) *generate;
static __typeof__(attune_session_open) *session_open;
static __typeof__(attune_session_step) *session_step;
static __typeof__(attune_session_logits) *session_logits;
static __typeof__(attune_session_vocabulary) *session_vocabulary;
static __typeof__(attune_session_close) *session_close;

static void *symbol(void *library, const char *name) {
  void *address = dlsym(library, name);
  if (!address) {
    fprintf(stderr, "generate: %s\n", dlerror());
    exit(1);
  }
  return address;
}

static void load(void *library) {
  open_model = symbol(library, "attune_open");
  close_model = symbol(library, "attune_close");
  last_error = symbol(library, "attune_last_error");
  encode = symbol(library, "attune_encode");
  decode = symbol(library, "attune_decode");
  load_draft = symbol(library, "attune_load_draft");
  generate = symbol(library, "attune_generate");
  session_open = symbol(library, "attune_session_open");
  session_step = symbol(library, "attune_session_step");
  session_logits = symbol(library, "attune_session_logits");
  session_vocabulary = symbol(library, "attune_session_vocabulary");
  session_close = symbol(library, "attune_session_close");
}

static int fail(void) {
  fprintf(stderr, "generate: %s\n", last_error());
  return 1;
}

/* Prints a token's text. A token may be part of a character, which a terminal
 * puts together again. */
static int print_token(void *model, int64_t id) {
  char text[256];
  int64_t length = decode(model, &id, 1, text, sizeof(text));
  if (length > (int64_t)sizeof(text))
    length = sizeof(text);
  if (length > 0)
    fwrite(text, 1, (size_t)length, stdout);
  fflush(stdout);
  return 1;
}

static int show_likeliest(attune_instance *model, const int64_t *ids,
                          int64_t count) {
  attune_session *session = session_open(model, 1, count);
  if (!session || session_step(session, ids, count) != ATTUNE_OK)
    return fail();
  const float *logits = session_logits(session);
  int64_t vocabulary = session_vocabulary(session);
  float ceiling = 1e30f;
  printf("likeliest first tokens:\n");
  for (int rank = 0; rank < 3; ++rank) {
    int64_t best = -1;
    for (int64_t id = 0; id < vocabulary; ++id)
      if (logits[id] < ceiling && (best < 0 || logits[id] > logits[best]))
        best = id;
    if (best < 0)
      break;
    ceiling = logits[best];
    printf("  %+.3f \"", (double)logits[best]);
    print_token(model, best);
    printf("\"\n");
  }
  session_close(session);
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: generate LIBRARY PROMPT [NEW_TOKENS [DRAFT]]\n");
    return 2;
  }
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "generate: %s\n", dlerror());
    return 1;
  }
  load(library);
  const attune_model_descriptor *descriptor = symbol(library, "attune_model");
  attune_instance *model = open_model(descriptor, NULL);
  if (!model)
    return fail();

  int64_t ids[512];
  int64_t count = encode(model, argv[2], strlen(argv[2]), ids, 512);
  if (count < 0)
    return fail();
  if (count == 0 || count > 512) {
    fprintf(stderr, "generate: the prompt has %lld tokens\n", (long long)count);
    return 1;
  }
  attune_generate_options options = {0};
  options.struct_size = sizeof(options);
  options.max_new_tokens = argc > 3 ? atoi(argv[3]) : 100;
  attune_guess_counts counts;
  options.guess_counts = &counts;
  if (argc > 4) {
    if (load_draft(model, argv[4]) != ATTUNE_OK)
      return fail();
    options.draft_tokens = 4;
  }
  printf("%s", argv[2]);
  if (generate(model, ids, count, &options, print_token, model) != ATTUNE_OK)
    return fail();
  printf("\n");
  if (argc > 4)
    printf("%lld of %lld guesses were right: %lld tokens in %lld steps\n",
           (long long)counts.accepted, (long long)counts.guesses,
           (long long)counts.tokens, (long long)counts.steps);
  int status = show_likeliest(model, ids, count);
  close_model(model);
  dlclose(library);
  return status;
}
