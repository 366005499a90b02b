/*===- prefill.c - Prefill and decode speed beside the machine's peak -----===*\
|*
|* Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* prefill MODEL.so TOKENS PARAMETERS [THREADS [RUNS]]
 *
 * Times one pass over TOKENS tokens (all logits) and one cached step after
 * them, and measures the FMA and read peaks of the same number of threads right
 * before and after. PARAMETERS are those of the matrices each token meets
 * (GPT-2 small: 123.5e6 with its head); attention's products are not counted,
 * so the share of the peak is a lower bound. Medians of RUNS.
 *
 *   cc -O2 -pthread -Iinclude test/Benchmark/prefill.c -ldl -o prefill
 *
 * A few tokens of a small model show here that it still runs:
 * REQUIRES: x86-64-v3
 * RUN: attune compile %examples/storyteller -o %t.so
 * RUN: %cc -O2 -pthread -I%attune_src_root/include %s -ldl -o %t.prefill
 * RUN: %t.prefill %t.so 16 931200 2 1 | FileCheck %s
 * CHECK: peak {{[0-9.]+}} GFLOP/s
 * CHECK: forward 16 tokens: {{.*}} of peak
 * CHECK: decode: {{.*}} tokens/s
 */

#define _GNU_SOURCE
#include "attune/Runtime/attune.h"

#include <dlfcn.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int n) {
  qsort(values, n, sizeof *values, compare);
  return values[n / 2];
}

/* Twelve independent accumulators hide the latency of two FMA units; the empty
 * asm keeps each in its register and in the loop. */
#define ONE(FMA, X)                                                            \
  do {                                                                         \
    X = FMA(X, a, b);                                                          \
    __asm__ volatile("" : "+v"(X));                                            \
  } while (0)
#define KERNEL(NAME, TARGET, TYPE, SET, FMA)                                   \
  __attribute__((target(TARGET), noinline)) static void NAME(long n) {         \
    TYPE a = SET(0.5f), b = SET(1.0f);                                         \
    TYPE c0 = b, c1 = b, c2 = b, c3 = b, c4 = b, c5 = b, c6 = b, c7 = b,       \
         c8 = b, c9 = b, c10 = b, c11 = b;                                     \
    for (long k = 0; k < n; ++k) {                                             \
      ONE(FMA, c0);                                                            \
      ONE(FMA, c1);                                                            \
      ONE(FMA, c2);                                                            \
      ONE(FMA, c3);                                                            \
      ONE(FMA, c4);                                                            \
      ONE(FMA, c5);                                                            \
      ONE(FMA, c6);                                                            \
      ONE(FMA, c7);                                                            \
      ONE(FMA, c8);                                                            \
      ONE(FMA, c9);                                                            \
      ONE(FMA, c10);                                                           \
      ONE(FMA, c11);                                                           \
    }                                                                          \
  }
KERNEL(fma256, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps)
KERNEL(fma512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps)

static double *memory;
static const size_t memory_doubles = (size_t)32 << 20; /* 256 MB */
static long parts;
static volatile double sink;

static void *run_fma(void *unused) {
  (void)unused;
  long n = 20 * 1000 * 1000;
  if (__builtin_cpu_supports("avx512f"))
    fma512(n);
  else
    fma256(n);
  return NULL;
}

/* Eight vectors in flight, so that neither adds nor latency hold the loads up.
 */
__attribute__((target("avx2"))) static void *run_read(void *argument) {
  size_t size = memory_doubles / parts;
  const double *p = memory + size * (long)argument;
  __m256d sums[8];
  for (int i = 0; i < 8; ++i)
    sums[i] = _mm256_setzero_pd();
  for (size_t i = 0; i < size; i += 32)
    for (int j = 0; j < 8; ++j)
      sums[j] = _mm256_add_pd(sums[j], _mm256_load_pd(p + i + 4 * j));
  for (int j = 1; j < 8; ++j)
    sums[0] = _mm256_add_pd(sums[0], sums[j]);
  sink += _mm256_cvtsd_f64(sums[0]);
  return NULL;
}

static double on_threads(int threads, void *(*work)(void *)) {
  pthread_t team[64];
  parts = threads;
  double start = now();
  for (long i = 0; i < threads; ++i)
    pthread_create(&team[i], NULL, work, (void *)i);
  for (int i = 0; i < threads; ++i)
    pthread_join(team[i], NULL);
  return now() - start;
}

static double fma_peak(int threads) {
  double lanes = __builtin_cpu_supports("avx512f") ? 16 : 8;
  return threads * 2.0 * 12 * lanes * 20e6 / on_threads(threads, run_fma) / 1e9;
}

static double read_peak(int threads) {
  return memory_doubles * 8.0 / on_threads(threads, run_read) / 1e9;
}

static void *symbol(void *library, const char *name) {
  void *address = dlsym(library, name);
  if (!address) {
    fprintf(stderr, "prefill: the library has no %s\n", name);
    exit(1);
  }
  return address;
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr,
            "usage: prefill MODEL.so TOKENS PARAMETERS [THREADS [RUNS]]\n");
    return 2;
  }
  int64_t tokens = atoll(argv[2]);
  double parameters = atof(argv[3]);
  int threads = argc > 4 ? atoi(argv[4]) : 2,
      runs = argc > 5 ? atoi(argv[5]) : 5;
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library) {
    fprintf(stderr, "prefill: %s\n", dlerror());
    return 1;
  }
#define FUNCTION(NAME) __typeof__(&NAME) p_##NAME = symbol(library, #NAME)
  FUNCTION(attune_open);
  FUNCTION(attune_session_open);
  FUNCTION(attune_session_step);
  FUNCTION(attune_session_reset);
  FUNCTION(attune_last_error);
  FUNCTION(attune_run);
  attune_open_options options = {0};
  options.struct_size = sizeof options;
  options.threads = threads;
  attune_instance *model =
      p_attune_open(symbol(library, "attune_model"), &options);
  attune_session *session =
      model ? p_attune_session_open(model, 1, tokens + 8) : NULL;
  int64_t *ids = calloc(tokens, sizeof *ids);
  for (int64_t i = 0; i < tokens; ++i)
    ids[i] = (i * 7919) % 997;
  attune_tensor input = {0}, output = {0};
  input.name = "input_ids";
  input.dtype = ATTUNE_I64;
  input.rank = 2;
  input.shape[0] = 1;
  input.shape[1] = tokens;
  input.data = ids;
  output.name = "logits";
  if (!session) {
    fprintf(stderr, "prefill: %s\n", p_attune_last_error());
    return 1;
  }
  memory = aligned_alloc(64, memory_doubles * 8);
  memset(memory, 1, memory_doubles * 8);

  double whole[64], step[64], prompt[64], fma = fma_peak(threads),
                                          read = read_peak(threads);
  for (int i = -1; i < runs; ++i) {
    double start = now();
    output.data = NULL;
    if (p_attune_run(model, &input, 1, &output, 1) != ATTUNE_OK)
      break;
    double pass = now() - start;
    p_attune_session_reset(session);
    start = now();
    if (p_attune_session_step(session, ids, tokens) != ATTUNE_OK)
      break;
    double cached = now() - start;
    int64_t next = 5;
    start = now();
    for (int k = 0; k < 4; ++k)
      if (p_attune_session_step(session, &next, 1) != ATTUNE_OK)
        break;
    double one = (now() - start) / 4;
    if (i >= 0)
      whole[i] = pass, prompt[i] = cached, step[i] = one;
    if (i == runs - 1) {
      double fma2 = fma_peak(threads), read2 = read_peak(threads);
      fma = fma > fma2 ? fma : fma2;
      read = read > read2 ? read : read2;
      double t = median(whole, runs), g = 2e-9 * parameters * tokens / t;
      printf("threads %d\npeak %.1f GFLOP/s, %.1f GB/s read\n", threads, fma,
             read);
      printf("forward %lld tokens: %.1f ms, %.1f GFLOP/s, %.1f%% of peak\n",
             (long long)tokens, 1e3 * t, g, 100 * g / fma);
      printf("prefill %lld tokens: %.1f ms\n", (long long)tokens,
             1e3 * median(prompt, runs));
      double s = median(step, runs), b = 4e-9 * parameters / s;
      printf("decode: %.2f ms a token, %.1f tokens/s, %.1f GB/s (f32), %.1f%% "
             "of read peak\n",
             1e3 * s, 1 / s, b, 100 * b / read);
      return 0;
    }
  }
  fprintf(stderr, "prefill: %s\n", p_attune_last_error());
  return 1;
}
