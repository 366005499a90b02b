/*===- Model.h - C interface of a compiled model ------------------*- C -*-===*\
|*
|* Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* What the compiler emits and what the runtime calls. Everything a product
 * contains hangs off one `attune_model_descriptor`, exported as the symbol
 * `attune_model` of an object, shared library or executable. */

#ifndef ATTUNE_RUNTIME_MODEL_H
#define ATTUNE_RUNTIME_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTUNE_ABI_VERSION 3

/* A compiled entry point. `args` holds one pointer per argument of the entry,
 * in metadata order: a pointer to a memref descriptor
 *   { void *allocated, *aligned; int64_t offset, sizes[rank], strides[rank]; }
 * for a tensor, or to an int64_t for a number. Outputs are tensors the caller
 * allocates. Called by every thread of the team with the same arguments; the
 * kernels divide the work by attune_rt_thread() of attune_rt_num_threads(), or
 * claim pieces of it. */
typedef void (*attune_entry_fn)(void **args);

/* Kernels for a GPU. `ptx` ends with a zero; `cubin`, if there is one, is the
 * same code assembled for `chip`. */
typedef struct attune_device_code {
  const char *chip; /* as in --gpu: "sm_80" */
  const char *ptx;
  const void *cubin; /* or null */
  uint64_t num_kernels;
  const char *const *kernels; /* names, in the order of their numbers */
} attune_device_code;

typedef struct attune_model_descriptor {
  uint32_t abi_version; /* ATTUNE_ABI_VERSION */
  uint32_t num_entries;
  const char *metadata; /* JSON, see lib/Runtime/README.md */
  uint64_t metadata_size;
  const attune_entry_fn *entries; /* in the order of metadata "entries" */
  /* Null: the entries compute on the CPU. Else they launch kernels; tensors are
   * memory of the device, and one thread calls them. */
  const attune_device_code *device;
  /* A table of the size that metadata "tokenizer" has, at a multiple of eight
   * bytes; without that key it is not looked at. */
  const void *tokenizer;
} attune_model_descriptor;

/* Provided by the runtime, called by generated code. */

/* All threads of the team wait until every one has arrived. */
void attune_rt_barrier(void);
/* An iteration of [0, total) that was given to no thread of the team since the
 * last barrier; `total` or more once there is none. Between two barriers all
 * calls have the same total, below 2^32. */
int64_t attune_rt_claim(int64_t total);
int64_t attune_rt_thread(void);
int64_t attune_rt_num_threads(void);
/* A frame of `bytes` in the model's shared arena, 64-byte aligned, the same
 * address for every thread of the team; frames nest like a stack. */
void *attune_rt_frame_push(int64_t bytes);
void attune_rt_frame_pop(int64_t bytes);

/* Called by models that several ranks share, by every thread of the team. Of a
 * process that is no rank, the first is 0 and the others do nothing. */
int64_t attune_rt_rank(void);
/* The sum of `input` over all ranks, in their order, into `dest`; with
 * `accumulate`, onto what is there. `count` elements. */
void attune_rt_all_reduce(const float *input, float *dest, int64_t count,
                          int64_t accumulate);
/* The same of [rows, columns] where ranks give few of the rows: this one those
 * of which one of `active` numbers of `experts` is from 0 to less than `below`.
 * The others are zeros. */
void attune_rt_all_reduce_rows(const float *input, float *dest, int64_t rows,
                               int64_t columns, int64_t accumulate,
                               const int64_t *experts, int64_t active,
                               int64_t below);
/* The first `columns` of each row of `input` ([rows, input_columns]) of all
 * ranks side by side in `dest` ([rows, dest_columns]), as far as there is room.
 */
void attune_rt_all_gather(const float *input, float *dest, int64_t rows,
                          int64_t input_columns, int64_t columns,
                          int64_t dest_columns);
/* Groups of ranks that share positions of a sequence: the number of this one,
 * and what attention gives over the keys of all of them, of `input` ([rows,
 * width]) over those of each, by the logarithms `lse` of their sums. */
int64_t attune_rt_rank_of_positions(void);
void attune_rt_all_merge(const float *input, const float *lse, float *dest,
                         int64_t rows, int64_t width);

/* Called by the entries of a model for a GPU. A kernel's parameters are 8-byte
 * words; sizes of grid and block that are zero launch nothing. */
void attune_rt_launch(int64_t kernel, int64_t grid_x, int64_t grid_y,
                      int64_t grid_z, int64_t block_x, int64_t block_y,
                      int64_t block_z, int64_t shared_bytes,
                      const uint64_t *words, int64_t num_words);
/* The next launch may be an instruction of a persistent kernel, or of each of
 * two with two calls. Blocks of it have so many threads: what the launched
 * kernel is there, and the most of its blocks that one of those has room for.
 */
void attune_rt_instruction(int64_t kernel, int64_t threads,
                           int64_t shared_bytes, int64_t number,
                           int64_t at_once);
/* It reads so much memory of the device from an address on, or, if `writes` is
 * not zero, writes it and may read it. */
void attune_rt_access(int64_t address, int64_t bytes, int64_t writes);
/* Where the device has the map of a matrix of `rows` rows, `stride` bytes
 * apart: what copies of boxes of it need. Elements have 2 or 8 bytes;
 * `swizzled` rows of a box have 128. With `heads` there are as many such
 * matrices, `head_stride` bytes apart, in each of some batches. */
int64_t attune_rt_tensor_map(int64_t address, int64_t element_bytes,
                             int64_t columns, int64_t rows, int64_t stride,
                             int64_t heads, int64_t head_stride,
                             int64_t batches, int64_t batch_stride,
                             int64_t box_columns, int64_t box_rows,
                             int64_t swizzled);
/* Up to 8 bytes of device memory, once all launches before are done. */
int64_t attune_rt_device_read(const void *address, int64_t bytes);
/* As attune_rt_frame_push, of device memory. */
void *attune_rt_device_push(int64_t bytes);
void attune_rt_device_pop(int64_t bytes);

/* For ranks that share the model, on floats of device memory: the sum over all
 * of them, and what each has, one behind the other in their order; not zero,
 * `of_positions` means one rank of each group that shares positions. */
void attune_rt_device_all_reduce(int64_t input, int64_t dest, int64_t count);
void attune_rt_device_all_gather(int64_t input, int64_t dest, int64_t count,
                                 int64_t of_positions);

#ifdef __cplusplus
}
#endif

#endif /* ATTUNE_RUNTIME_MODEL_H */
