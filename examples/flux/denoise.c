/*===- denoise.c - The loop around Flux and Stable Diffusion 3 ------------===*\
|*
|* Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* denoise LIBRARY NOISE HEIGHT WIDTH TEXT POOLED GUIDANCE STEPS OUT: makes
 * latents [channels, HEIGHT, WIDTH] out of as much noise. TEXT has the hidden
 * states of the text's tokens and POOLED its vector; for Stable Diffusion 3
 * both have those of the empty text first, as far from which GUIDANCE leads.
 * All files are raw floats. A step goes from one share of noise to the next
 * along the flow that the model predicts (Euler's rule). */

#include "attune/Runtime/attune.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const char *why) {
  fprintf(stderr, "denoise: %s%s\n", what, why);
  exit(1);
}

static void *symbol(void *library, const char *name) {
  void *address = dlsym(library, name);
  if (!address)
    fail("", dlerror());
  return address;
}

/* The floats of a file. */
static float *load(const char *path, int64_t *count) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END))
    fail("cannot read ", path);
  *count = ftell(file) / (int64_t)sizeof(float);
  rewind(file);
  float *values = malloc((size_t)*count * sizeof(float));
  if (!values || !*count ||
      fread(values, sizeof(float), (size_t)*count, file) != (size_t)*count)
    fail("cannot read ", path);
  fclose(file);
  return values;
}

/* The share of noise at a step, as FlowMatchEulerDiscreteScheduler of diffusers
 * has it for these models. More noise is left for longer in larger images. */
static double noise_at(int step, int steps, int flux, int guided,
                       int64_t tokens) {
  if (step == steps)
    return 0;
  if (flux) {
    double even = 1 - (double)step / steps;
    if (!guided) /* schnell */
      return even;
    double slope = (1.15 - 0.5) / (4096 - 256);
    double shift = exp(0.5 + slope * (double)(tokens - 256));
    return shift / (shift + 1 / even - 1);
  }
  const double shift = 3, least = shift / (1000 + shift - 1);
  double even = steps == 1 ? 1 : 1 + (least - 1) * step / (steps - 1);
  return shift * even / (1 + (shift - 1) * even);
}

/* The place in a row of tokens of latent i of [channels, height, width]: a
 * token is a square of two by two, channel by channel. */
static int64_t packed(int64_t i, int64_t channels, int64_t height,
                      int64_t width) {
  int64_t c = i / (height * width), y = i / width % height, x = i % width;
  int64_t token = y / 2 * (width / 2) + x / 2;
  return (token * channels + c) * 4 + y % 2 * 2 + x % 2;
}

int main(int argc, char **argv) {
  if (argc != 10) {
    fprintf(stderr, "usage: denoise LIBRARY NOISE HEIGHT WIDTH TEXT POOLED "
                    "GUIDANCE STEPS OUT\n");
    return 2;
  }
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fail("", dlerror());
  __typeof__(attune_open) *open_model = symbol(library, "attune_open");
  __typeof__(attune_run) *run = symbol(library, "attune_run");
  __typeof__(attune_close) *close_model = symbol(library, "attune_close");
  __typeof__(attune_last_error) *why = symbol(library, "attune_last_error");
  __typeof__(attune_num_inputs) *num_inputs =
      symbol(library, "attune_num_inputs");
  __typeof__(attune_input_info) *info_of = symbol(library, "attune_input_info");
  attune_instance *model = open_model(symbol(library, "attune_model"), NULL);
  if (!model)
    fail("", why());

  int64_t count, text_count, pooled_count;
  float *noise = load(argv[2], &count), *text = load(argv[5], &text_count);
  float *pooled = load(argv[6], &pooled_count);
  int64_t height = atoll(argv[3]), width = atoll(argv[4]);
  float guidance = (float)atof(argv[7]);
  int steps = atoi(argv[8]);
  if (height < 2 || width < 2 || height % 2 || width % 2 || steps < 1 ||
      count % (height * width))
    fail("no latents of this height and width in ", argv[2]);
  int64_t channels = count / (height * width), tokens = count / channels / 4;

  /* Which model it is, and how wide the text's vectors are. */
  int flux = 0, guided = 0;
  int64_t text_width = 0, pooled_width = 0;
  for (uint32_t i = 0; i < num_inputs(model); ++i) {
    attune_tensor_info info;
    info_of(model, i, &info);
    flux |= !strcmp(info.name, "img_ids");
    guided |= !strcmp(info.name, "guidance");
    if (!strcmp(info.name, "encoder_hidden_states"))
      text_width = info.shape[2];
    if (!strcmp(info.name, "pooled_projections"))
      pooled_width = info.shape[1];
  }
  int64_t batch = flux ? 1 : 2;
  if (text_width < 1 || pooled_width < 1 || text_count % (batch * text_width) ||
      pooled_count != batch * pooled_width)
    fail("texts of another model: ", argv[5]);
  int64_t words = text_count / batch / text_width;

  float *x = malloc((size_t)count * sizeof(float));
  float *both = malloc((size_t)(batch * count) * sizeof(float));
  float *flow = malloc((size_t)(batch * count) * sizeof(float));
  float *places = calloc((size_t)(3 * tokens), sizeof(float));
  float *nowhere = calloc((size_t)(3 * words), sizeof(float));
  if (!x || !both || !flow || !places || !nowhere)
    fail("out of memory", "");
  for (int64_t i = 0; i < count; ++i)
    x[flux ? packed(i, channels, height, width) : i] = noise[i];
  for (int64_t i = 0; i < tokens; ++i) {
    places[3 * i + 1] = (float)(i / (width / 2));
    places[3 * i + 2] = (float)(i % (width / 2));
  }

  for (int step = 0; step < steps; ++step) {
    double now = noise_at(step, steps, flux, guided, tokens);
    double next = noise_at(step + 1, steps, flux, guided, tokens);
    float time[] = {(float)(flux ? now : 1000 * now), (float)(1000 * now)};
    for (int64_t b = 0; b < batch; ++b)
      memcpy(both + b * count, x, (size_t)count * sizeof(float));
    attune_tensor inputs[] = {
        {"hidden_states",
         ATTUNE_F32,
         4,
         {batch, channels, height, width},
         both},
        {"encoder_hidden_states",
         ATTUNE_F32,
         3,
         {batch, words, text_width},
         text},
        {"pooled_projections", ATTUNE_F32, 2, {batch, pooled_width}, pooled},
        {"timestep", ATTUNE_F32, 1, {batch}, time},
        {"txt_ids", ATTUNE_F32, 2, {words, 3}, nowhere},
        {"img_ids", ATTUNE_F32, 2, {tokens, 3}, places},
        {"guidance", ATTUNE_F32, 1, {1}, &guidance}};
    attune_tensor output = {
        "sample", ATTUNE_F32, 4, {batch, channels, height, width}, flow};
    if (flux) {
      inputs[0].rank = output.rank = 3;
      inputs[0].shape[1] = output.shape[1] = tokens;
      inputs[0].shape[2] = output.shape[2] = 4 * channels;
    }
    if (run(model, inputs, flux ? 6 + (uint32_t)guided : 4, &output, 1) !=
        ATTUNE_OK)
      fail("", why());
    for (int64_t i = 0; i < count; ++i) {
      float along = flow[i];
      if (!flux) /* away from the empty text */
        along += guidance * (flow[count + i] - flow[i]);
      x[i] += (float)((next - now) * along);
    }
  }

  for (int64_t i = 0; i < count; ++i)
    noise[i] = x[flux ? packed(i, channels, height, width) : i];
  FILE *file = fopen(argv[9], "wb");
  if (!file ||
      fwrite(noise, sizeof(float), (size_t)count, file) != (size_t)count ||
      fclose(file))
    fail("cannot write ", argv[9]);
  close_model(model);
  return 0;
}
