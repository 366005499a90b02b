/*===- see.c - Pictures for a compiled model ------------------------------===*\
|*
|* Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* see LIBRARY NEW_TOKENS PROMPT FILE...: continues a text about pictures with a
 * model that sees, compiled to a shared library. The prompt has an image token
 * for each picture, such as <|image_pad|>, where the model expects it. The
 * first picture is read by the library, the others are bytes in memory. */

#include "attune/Runtime/attune.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __typeof__(attune_last_error) *last_error;

static void fail(const char *what) {
  fprintf(stderr, "see: %s\n", what);
  exit(1);
}

static void *symbol(void *library, const char *name) {
  void *address = dlsym(library, name);
  if (!address)
    fail(dlerror());
  return address;
}

static void *read_file(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  long size = -1;
  if (file && fseek(file, 0, SEEK_END) == 0)
    size = ftell(file);
  char *data = size < 0 ? NULL : malloc((size_t)size + 1);
  if (!data || fseek(file, 0, SEEK_SET) != 0 ||
      fread(data, 1, (size_t)size, file) != (size_t)size)
    fail("cannot read a picture");
  fclose(file);
  *bytes = (size_t)size;
  return data;
}

struct text {
  attune_instance *model;
  __typeof__(attune_decode) *decode;
};

static int print_token(void *context, int64_t id) {
  struct text *text = context;
  char piece[256];
  int64_t bytes =
      text->decode(text->model, &id, 1, piece, (int64_t)sizeof(piece));
  printf("%.*s", (int)(bytes < (int64_t)sizeof(piece) ? bytes : 256), piece);
  fflush(stdout);
  return 1;
}

int main(int argc, char **argv) {
  enum { most = 8 };
  if (argc < 5 || argc - 4 > most)
    fail("usage: see LIBRARY NEW_TOKENS PROMPT FILE..., 8 files at most");
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library)
    fail(dlerror());
  __typeof__(attune_open) *open_model = symbol(library, "attune_open");
  __typeof__(attune_close) *close_model = symbol(library, "attune_close");
  __typeof__(attune_picture_read) *picture_read =
      symbol(library, "attune_picture_read");
  __typeof__(attune_picture_parse) *picture_parse =
      symbol(library, "attune_picture_parse");
  __typeof__(attune_picture_close) *picture_close =
      symbol(library, "attune_picture_close");
  __typeof__(attune_encode) *encode = symbol(library, "attune_encode");
  __typeof__(attune_generate) *generate = symbol(library, "attune_generate");
  last_error = symbol(library, "attune_last_error");

  struct text text = {open_model(symbol(library, "attune_model"), NULL),
                      symbol(library, "attune_decode")};
  if (!text.model)
    fail(last_error());

  attune_picture *pictures[most];
  int count = argc - 4;
  for (int i = 0; i < count; ++i) {
    size_t bytes = 0;
    void *data = i > 0 ? read_file(argv[4 + i], &bytes) : NULL;
    pictures[i] = i > 0 ? picture_parse(text.model, data, bytes)
                        : picture_read(text.model, argv[4]);
    free(data);
    if (!pictures[i])
      fail(last_error());
  }

  int64_t ids[4096];
  int64_t length =
      encode(text.model, argv[3], strlen(argv[3]), ids, sizeof(ids) / 8);
  if (length < 0 || length > (int64_t)(sizeof(ids) / 8))
    fail(length < 0 ? last_error() : "the prompt is too long");
  attune_generate_options options = {sizeof(options)};
  options.max_new_tokens = atoll(argv[2]);
  options.pictures = pictures;
  options.num_pictures = count;
  if (generate(text.model, ids, length, &options, print_token, &text) !=
      ATTUNE_OK)
    fail(last_error());
  printf("\n");

  for (int i = 0; i < count; ++i)
    picture_close(pictures[i]);
  close_model(text.model);
  return 0;
}
