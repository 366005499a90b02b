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

#define ATTUNE_ABI_VERSION 1

/* A compiled entry point. `args` holds one pointer per argument of the entry,
 * in metadata order: a pointer to a memref descriptor
 *   { void *allocated, *aligned; int64_t offset, sizes[rank], strides[rank]; }
 * for a tensor, or to an int64_t for a number. Outputs are tensors the caller
 * allocates. Called by every thread of the team with the same arguments; the
 * kernels divide the work by attune_rt_thread() of attune_rt_num_threads(). */
typedef void (*attune_entry_fn)(void **args);

typedef struct attune_model_descriptor {
  uint32_t abi_version; /* ATTUNE_ABI_VERSION */
  uint32_t num_entries;
  const char *metadata; /* JSON, see lib/Runtime/README.md */
  uint64_t metadata_size;
  const attune_entry_fn *entries; /* in the order of metadata "entries" */
} attune_model_descriptor;

/* Provided by the runtime, called by generated code. */

/* All threads of the team wait until every one has arrived. */
void attune_rt_barrier(void);
int64_t attune_rt_thread(void);
int64_t attune_rt_num_threads(void);
/* A frame of `bytes` in the model's shared arena, 64-byte aligned, the same
 * address for every thread of the team; frames nest like a stack. */
void *attune_rt_frame_push(int64_t bytes);
void attune_rt_frame_pop(int64_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* ATTUNE_RUNTIME_MODEL_H */
