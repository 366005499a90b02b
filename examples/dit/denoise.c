/*===- denoise.c - The loop around a diffusion transformer ----------------===*\
|*
|* Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* denoise LIBRARY NOISE LABEL STEPS OUT: makes latents [4, SIDE, SIDE] of the
 * class LABEL out of as much noise, in so many steps. NOISE and OUT are raw
 * floats. A step: the model predicts the noise in x, the image without it is
 * mixed with less of the same noise (DDIM, Song et al. 2021). */

#include "attune/Runtime/attune.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATCH = 2, CHANNELS = 4, TRAINED = 1000 };

static void *symbol(void *library, const char *name) {
  void *address = dlsym(library, name);
  if (!address) {
    fprintf(stderr, "denoise: %s\n", dlerror());
    exit(1);
  }
  return address;
}

/* How much of the image is left at a time step of training: its variance. */
static double alpha(int time) {
  double left = 1;
  for (int t = 0; t <= time; ++t)
    left *= 1 - (1e-4 + (0.02 - 1e-4) * t / (TRAINED - 1));
  return left;
}

/* Predicted noise at a channel and place: tokens are patches, row by row, and
 * in each lie rows, columns and then channels, noise before its variance. */
static float noise_at(const float *patches, int side, int c, int y, int x) {
  int token = y / PATCH * (side / PATCH) + x / PATCH;
  int place = y % PATCH * PATCH + x % PATCH;
  return patches[(token * PATCH * PATCH + place) * 2 * CHANNELS + c];
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: denoise LIBRARY NOISE LABEL STEPS OUT\n");
    return 2;
  }
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "denoise: %s\n", dlerror());
    return 1;
  }
  __typeof__(attune_open) *open_model = symbol(library, "attune_open");
  __typeof__(attune_run) *run = symbol(library, "attune_run");
  __typeof__(attune_close) *close_model = symbol(library, "attune_close");
  __typeof__(attune_last_error) *last_error =
      symbol(library, "attune_last_error");
  const attune_model_descriptor *descriptor = symbol(library, "attune_model");

  /* The side follows from how much noise there is. */
  FILE *file = fopen(argv[2], "rb");
  if (!file || fseek(file, 0, SEEK_END)) {
    perror(argv[2]);
    return 1;
  }
  int count = (int)(ftell(file) / sizeof(float));
  int side = (int)lround(sqrt((double)count / CHANNELS));
  float *x = malloc(count * sizeof(float));
  float *patches = malloc(2 * count * sizeof(float));
  rewind(file);
  if (fread(x, sizeof(float), count, file) != (size_t)count ||
      side * side * CHANNELS != count) {
    fprintf(stderr, "denoise: %s holds no latents\n", argv[2]);
    return 1;
  }
  fclose(file);

  attune_instance *model = open_model(descriptor, NULL);
  int64_t label = atoll(argv[3]);
  int steps = atoi(argv[4]);
  for (int step = steps - 1; model && step >= 0; --step) {
    float time = (float)(step * TRAINED / steps);
    attune_tensor inputs[] = {
        {"latents", ATTUNE_F32, 4, {1, CHANNELS, side, side}, x},
        {"time", ATTUNE_F32, 1, {1}, &time},
        {"label", ATTUNE_I64, 2, {1, 1}, &label}};
    attune_tensor output = {
        "patches",
        ATTUNE_F32,
        3,
        {1, count / (PATCH * PATCH * CHANNELS), 2 * PATCH * PATCH * CHANNELS},
        patches};
    if (run(model, inputs, 3, &output, 1) != ATTUNE_OK)
      break;
    double now = alpha((int)time);
    double next = step ? alpha((step - 1) * TRAINED / steps) : 1;
    for (int i = 0; i < count; ++i) {
      double e =
          noise_at(patches, side, i / (side * side), i / side % side, i % side);
      double image = (x[i] - sqrt(1 - now) * e) / sqrt(now);
      x[i] = (float)(sqrt(next) * image + sqrt(1 - next) * e);
    }
    if (step == 0) {
      file = fopen(argv[5], "wb");
      if (!file || fwrite(x, sizeof(float), count, file) != (size_t)count ||
          fclose(file)) {
        perror(argv[5]);
        return 1;
      }
      close_model(model);
      return 0;
    }
  }
  fprintf(stderr, "denoise: %s\n", last_error());
  return 1;
}
