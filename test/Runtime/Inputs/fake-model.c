/*===- fake-model.c - A model written by hand -----------------------------===*\
|*
|* Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* What the compiler emits, in C, so that the runtime is tested without it: the
 * same calls (threads, barrier, frames), the same descriptor. With 16 tokens:
 *
 *   forward: logits[b, t, v] = weights[v] + (v == (ids[b, t] + 1) % 16)
 *            sums[b, t]      = position + sum over s <= t of ids * mask
 *   decode:  the largest logit is at the sum of all ids so far, modulo 16
 *
 * With FAKE_PARROT, decode repeats what comes before the first token 30, and
 * ends with 15.
 */

#include "attune/Runtime/Model.h"

#include <string.h>
#include <time.h>

/* How long a step takes, for tests of what happens meanwhile. */
#ifndef FAKE_DELAY_MS
#define FAKE_DELAY_MS 0
#endif

enum { vocabulary = 16 };

typedef struct {
  void *allocated, *aligned;
  int64_t offset, sizes[5], strides[5];
} memref5;

/* Descriptors of lower rank differ in where the strides begin. */
#define DATA(type, arg) ((type *)((memref5 *)(arg))->aligned)
#define SIZE(arg, d) (((memref5 *)(arg))->sizes[d])

void fake_forward(void **args) {
  const float *weights = DATA(const float, args[0]);
  const int64_t *ids = DATA(const int64_t, args[1]);
  const uint8_t *mask = DATA(const uint8_t, args[2]);
  const int64_t *positions = DATA(const int64_t, args[3]);
  float *logits = DATA(float, args[4]), *sums = DATA(float, args[5]);
  int64_t batch = SIZE(args[1], 0), seq = SIZE(args[1], 1);
  int64_t rows = batch * seq, thread = attune_rt_thread(),
          threads = attune_rt_num_threads();

  /* Each thread multiplies its rows into the shared frame; after the barrier
   * every thread reads what the others wrote. */
  float *masked = attune_rt_frame_push(rows * 4);
  for (int64_t r = thread; r < rows; r += threads)
    masked[r] = (float)(ids[r] * mask[r]);
  attune_rt_barrier();
  for (int64_t r = thread; r < rows; r += threads) {
    float sum = (float)positions[r];
    for (int64_t s = r / seq * seq; s <= r; ++s)
      sum += masked[s];
    sums[r] = sum;
    for (int v = 0; v < vocabulary; ++v)
      logits[r * vocabulary + v] =
          weights[v] + (v == (ids[r] + 1) % vocabulary ? 1.0f : 0.0f);
  }
  attune_rt_barrier();
  attune_rt_frame_pop(rows * 4);
}

void fake_decode(void **args) {
  const float *weights = DATA(const float, args[0]);
  const int64_t *ids = DATA(const int64_t, args[1]);
  const int64_t *positions = DATA(const int64_t, args[2]);
  int64_t past = *(int64_t *)args[3];
  float *cache = DATA(float, args[4]), *logits = DATA(float, args[5]);
  int64_t batch = SIZE(args[1], 0), seq = SIZE(args[1], 1);
  int64_t capacity = SIZE(args[4], 3), width = SIZE(args[5], 1);
  int64_t thread = attune_rt_thread(), threads = attune_rt_num_threads();
  struct timespec delay = {0, FAKE_DELAY_MS * 1000000L};
  if (thread == 0 && FAKE_DELAY_MS > 0)
    nanosleep(&delay, 0);
  for (int64_t r = thread; r < batch * seq; r += threads)
    if (positions[r] == past + r % seq)
      cache[r / seq * capacity + past + r % seq] = (float)ids[r];
  attune_rt_barrier();
  for (int64_t b = thread; b < batch; b += threads) {
    int64_t sum = 0;
    for (int64_t t = 0; t < past + seq; ++t)
      sum += (int64_t)cache[b * capacity + t];
    int64_t next = sum % vocabulary;
#ifdef FAKE_PARROT
    int64_t end = 0, total = past + seq;
    while (end < total && cache[b * capacity + end] != 30)
      ++end;
    next = total - end - 1 < end
               ? (int64_t)cache[b * capacity + total - end - 1]
               : 15;
#endif
    for (int64_t v = 0; v < width; ++v)
      logits[b * width + v] =
          weights[v % vocabulary] + (v == next ? 1.0f : 0.0f);
  }
}

const attune_entry_fn fake_entries[] = {fake_forward, fake_decode};

/* clang-format off */
#define FORWARD \
  "{\"name\":\"forward\",\"args\":[{\"kind\":\"weights\"}," \
  "{\"kind\":\"input\",\"name\":\"input_ids\",\"dtype\":\"i64\"," \
  "\"shape\":[\"batch\",\"seq\"],\"max\":16}," \
  "{\"kind\":\"input\",\"name\":\"attention_mask\",\"dtype\":\"bool\"," \
  "\"shape\":[\"batch\",\"seq\"],\"default\":\"ones\"}," \
  "{\"kind\":\"input\",\"name\":\"position_ids\",\"dtype\":\"i64\"," \
  "\"shape\":[\"batch\",\"seq\"],\"max\":40,\"default\":\"iota\"}," \
  "{\"kind\":\"output\",\"name\":\"logits\",\"dtype\":\"f32\"," \
  "\"shape\":[\"batch\",\"seq\",16]}," \
  "{\"kind\":\"output\",\"name\":\"sums\",\"dtype\":\"f32\"," \
  "\"shape\":[\"batch\",\"seq\"]}]}"
#define DECODE \
  "{\"name\":\"decode\",\"args\":[{\"kind\":\"weights\"}," \
  "{\"kind\":\"input\",\"name\":\"input_ids\",\"dtype\":\"i64\"," \
  "\"shape\":[\"batch\",\"seq\"],\"max\":16}," \
  "{\"kind\":\"input\",\"name\":\"position_ids\",\"dtype\":\"i64\"," \
  "\"shape\":[\"batch\",\"seq\"],\"default\":\"iota\"},{\"kind\":\"past\"}," \
  "{\"kind\":\"cache\",\"name\":\"k\",\"dtype\":\"f32\"," \
  "\"shape\":[1,\"batch\",1,\"capacity\",1]}," \
  "{\"kind\":\"output\",\"name\":\"logits\",\"dtype\":\"f32\"," \
  "\"shape\":[\"batch\",16]}]}"

const char fake_metadata[] =
  "{\"name\":\"fake\",\"abi\":3,\"entries\":[" FORWARD "," DECODE "]," \
  "\"context\":40,\"weights_bytes\":64,\"generation\":{\"eos\":[15],\"bos\":1}," \
  "\"inspect\":{\"parameters\":16,\"layers\":[" \
  "{\"layer\":\"embed\",\"parameters\":1234567}," \
  "{\"layer\":\"head\",\"parameters\":16}]}}";
/* clang-format on */

const attune_model_descriptor attune_model = {
    ATTUNE_ABI_VERSION, 2, fake_metadata, sizeof(fake_metadata) - 1,
    fake_entries,       0};
