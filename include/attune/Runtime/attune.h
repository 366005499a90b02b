/*===- attune.h - Embedding a compiled model ----------------------*- C -*-===*\
|*
|* Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* The C interface of a compiled shared library or object. Open the model once,
 * then run it, or generate with it:
 *
 *   attune_instance *model = attune_open(&attune_model, NULL);
 *   attune_tensor input = {"input_ids", ATTUNE_I64, 2, {1, 3}, ids};
 *   attune_tensor output = {"logits"};
 *   if (!model || attune_run(model, &input, 1, &output, 1) != ATTUNE_OK)
 *     puts(attune_last_error());
 *
 * Functions that can fail return a status or null; attune_last_error() then
 * says why. An instance and its sessions serve one caller at a time, but for
 * sets of sequences; several instances of a model share its mapped weights.
 * They belong to the process that opened them: in a child of fork, calls fail
 * with ATTUNE_BAD_CALL. So do calls on null, as after an attune_open() that
 * failed; what gives a number gives 0 or -1 then. */

#ifndef ATTUNE_RUNTIME_ATTUNE_H
#define ATTUNE_RUNTIME_ATTUNE_H

#include "attune/Runtime/Model.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ATTUNE_API __attribute__((visibility("default")))
#else
#define ATTUNE_API
#endif

/* The model of this product; defined by the compiler. */
extern ATTUNE_API const attune_model_descriptor attune_model;

typedef enum attune_status {
  ATTUNE_OK = 0,
  ATTUNE_BAD_INPUT = 1,
  ATTUNE_BAD_CALL = 2,       /* the caller broke a rule of this header */
  ATTUNE_RESOURCE_LIMIT = 4, /* over memory_limit, or out of memory */
  ATTUNE_INTERNAL_ERROR = 70
} attune_status;

typedef enum attune_dtype {
  ATTUNE_BOOL = 0, /* one byte, 0 or 1 */
  ATTUNE_U8 = 1,
  ATTUNE_I8 = 2,
  ATTUNE_U16 = 5,
  ATTUNE_I16 = 6,
  ATTUNE_F16 = 7,
  ATTUNE_BF16 = 8,
  ATTUNE_U32 = 9,
  ATTUNE_I32 = 10,
  ATTUNE_F32 = 11,
  ATTUNE_U64 = 12,
  ATTUNE_I64 = 13,
  ATTUNE_F64 = 14
} attune_dtype;

#define ATTUNE_MAX_RANK 8

/* A dense row-major tensor. */
typedef struct attune_tensor {
  const char *name;
  attune_dtype dtype;
  int32_t rank;
  int64_t shape[ATTUNE_MAX_RANK];
  void *data;
} attune_tensor;

/* What the model says of an input or output. A size that is only known at run
 * time is -1 in `shape` and named in `symbols`; of the others the name is NULL.
 * The strings live as long as the instance. */
typedef struct attune_tensor_info {
  const char *name;
  attune_dtype dtype;
  int32_t rank;
  int64_t shape[ATTUNE_MAX_RANK];
  const char *symbols[ATTUNE_MAX_RANK];
  int32_t optional; /* 1: filled in when it is not given */
} attune_tensor_info;

/* Zero means the default. Set struct_size to sizeof(attune_open_options). */
typedef struct attune_open_options {
  size_t struct_size;
  uint32_t threads;         /* default: one per available core */
  uint64_t memory_limit;    /* bytes of intermediate results */
  const char *weights_path; /* default: in or beside the loaded file */
  const void *weights;      /* or weights already in memory, which outlive */
  uint64_t weights_bytes;   /*   the instance */
} attune_open_options;

typedef struct attune_instance attune_instance;
typedef struct attune_session attune_session;

/* The message of this thread's last failure; never null. */
ATTUNE_API const char *attune_last_error(void);

/* `options` may be null. */
ATTUNE_API attune_instance *attune_open(const attune_model_descriptor *model,
                                        const attune_open_options *options);
/* Sessions that are open stay to be closed; whatever else they are asked is
 * ATTUNE_BAD_CALL. */
ATTUNE_API void attune_close(attune_instance *instance);

ATTUNE_API uint32_t attune_num_inputs(const attune_instance *instance);
ATTUNE_API uint32_t attune_num_outputs(const attune_instance *instance);
ATTUNE_API attune_status attune_input_info(const attune_instance *instance,
                                           uint32_t index,
                                           attune_tensor_info *info);
ATTUNE_API attune_status attune_output_info(const attune_instance *instance,
                                            uint32_t index,
                                            attune_tensor_info *info);
/* Most positions of a sequence, or -1. */
ATTUNE_API int64_t attune_context(const attune_instance *instance);

/* Sizes that cannot be read off the inputs of attune_run; kept until set again
 * or cleared with value 0. */
ATTUNE_API attune_status attune_set_dim(attune_instance *instance,
                                        const char *name, int64_t value);

/* The adapters that the model was compiled with (--lora-apart): how many, and
 * the name of one, or null. */
ATTUNE_API uint32_t attune_num_adapters(const attune_instance *instance);
ATTUNE_API const char *attune_adapter_name(const attune_instance *instance,
                                           uint32_t index);
/* What attune_run and attune_generate compute with, and sessions and sequences
 * of sets that are opened later. `name` null: no adapter, as at the start.
 * ATTUNE_BAD_INPUT: there is none of this name. */
ATTUNE_API attune_status attune_choose_adapter(attune_instance *instance,
                                               const char *name);

/* One forward pass. Each of `outputs` names an output. Where its `data` is
 * null, dtype, rank, shape and data are filled in, and the memory belongs to
 * the instance until its next run. Otherwise they must be those of the output,
 * and the result is written there. */
ATTUNE_API attune_status attune_run(attune_instance *instance,
                                    const attune_tensor *inputs,
                                    uint32_t num_inputs, attune_tensor *outputs,
                                    uint32_t num_outputs);

/* Pictures, for a model that sees and was compiled with a preprocessor_config:
 * a PNG or JPEG file, or the bytes of one, made what the model reads. Null:
 * failed. A picture can be used by all texts of its instance. */
typedef struct attune_picture attune_picture;
ATTUNE_API attune_picture *attune_picture_read(attune_instance *instance,
                                               const char *path);
ATTUNE_API attune_picture *attune_picture_parse(attune_instance *instance,
                                                const void *data, size_t bytes);
ATTUNE_API void attune_picture_close(attune_picture *picture);
/* The token in whose places pictures stand, and how many of them each picture
 * has, one behind the other unless the model's processor writes others between
 * them (Pixtral); -1: the model sees no pictures. Where pictures are cut into
 * tiles (SmolVLM, InternVL), each tile has so many. */
ATTUNE_API int64_t attune_picture_token(const attune_instance *instance);
ATTUNE_API int64_t attune_picture_length(const attune_instance *instance);
/* How many of them a picture has, in all of its tiles; -1: its instance was
 * closed. */
ATTUNE_API int64_t attune_picture_tokens(const attune_picture *picture);

/* Autoregressive decoding with a key/value cache of `capacity` positions (0:
 * the context), in the type that the model's weights are stored as. `ids` is
 * [batch, count]: first the prompts, then a token at a time. */
ATTUNE_API attune_session *attune_session_open(attune_instance *instance,
                                               int64_t batch, int64_t capacity);
ATTUNE_API attune_status attune_session_step(attune_session *session,
                                             const int64_t *ids, int64_t count);
/* Encoder-decoders: encodes `inputs`, each with the session's batch, for the
 * steps that follow, which are the decoder's and start over. */
ATTUNE_API attune_status attune_session_encode(attune_session *session,
                                               const attune_tensor *inputs,
                                               uint32_t num_inputs);
/* Models that see: the image tokens of the text, those of steps before and of
 * steps to come, stand for these pictures, in their order; in each row of the
 * session the same. Those that tokens of steps before stand for stay the first:
 * ATTUNE_BAD_CALL. The pictures may be closed afterwards. Where the tokens of a
 * picture see each other (Gemma 3), a step has all of them or none; where those
 * of the whole prompt do (PaliGemma), the first step has all of it. */
ATTUNE_API attune_status attune_session_see(attune_session *session,
                                            attune_picture *const *pictures,
                                            uint32_t num_pictures);
/* [batch, vocabulary] of the last position, valid until the next step. A model
 * for a GPU copies them from there when they are first asked for: null if that
 * fails. */
ATTUNE_API const float *attune_session_logits(const attune_session *session);
ATTUNE_API int64_t attune_session_vocabulary(const attune_session *session);
ATTUNE_API int64_t attune_session_length(const attune_session *session);
/* Forgets all but the first `length` positions. A model that keeps a state
 * which no step can take back (state spaces, recurrent layers), or whose caches
 * depend on the length of the text, refuses: ATTUNE_BAD_INPUT. So does one
 * whose layers have windows, if the text is longer than these and their slack
 * (--window-slack) and `length` lies further back than they remember; a quarter
 * of the slack is always possible, and so is 0. */
ATTUNE_API attune_status attune_session_rewind(attune_session *session,
                                               int64_t length);
ATTUNE_API void attune_session_reset(attune_session *session);
/* Computes with another adapter than others do; `name` null: with none. What is
 * cached is of one adapter, so the session must be empty. */
ATTUNE_API attune_status attune_session_choose_adapter(attune_session *session,
                                                       const char *name);
ATTUNE_API void attune_session_close(attune_session *session);

/* A set of sequences of one model, whose next tokens are computed in one step:
 * weights are read once for all of them. Sequences are numbered from 0 and are
 * empty at first; each has a cache of `capacity` positions (0: the context),
 * whose memory it takes when it is first used. What a sequence computes is
 * what it would compute alone. At most 65536 sequences; encoder-decoders are
 * refused: ATTUNE_BAD_INPUT.
 *
 * Unlike all else of an instance, sets may be used from several threads: their
 * calls wait for each other. Two threads that use one sequence have to agree on
 * who does what. While a set is used, no other function may use its instance,
 * and it is closed when no call is running. */
typedef struct attune_set attune_set;
ATTUNE_API attune_set *attune_set_open(attune_instance *instance,
                                       uint32_t sequences, int64_t capacity);
/* A prompt, or more of one: appends `count` ids to a sequence. */
ATTUNE_API attune_status attune_set_append(attune_set *set, uint32_t sequence,
                                           const int64_t *ids, int64_t count);
/* As attune_session_see. */
ATTUNE_API attune_status attune_set_see(attune_set *set, uint32_t sequence,
                                        attune_picture *const *pictures,
                                        uint32_t num_pictures);
/* Appends `ids[i]` to the sequence `sequences[i]`; they are `count` different
 * ones. A set that cannot do this in one step of the model takes one for each:
 * the model has no such step (`inspect` says why), or computes on a GPU, or is
 * a library that was compiled without a tokenizer. If it fails, each of these
 * sequences has its token or is what it was before; one of a model that keeps a
 * state may be empty. attune_set_length tells which. */
ATTUNE_API attune_status attune_set_step(attune_set *set,
                                         const uint32_t *sequences,
                                         const int64_t *ids, uint32_t count);
/* 1: in one step. */
ATTUNE_API int32_t attune_set_steps_together(attune_set *set);
/* [vocabulary] of a sequence's last position, valid until the sequence is
 * changed; null: it is empty. */
ATTUNE_API const float *attune_set_logits(attune_set *set, uint32_t sequence);
ATTUNE_API int64_t attune_set_vocabulary(attune_set *set);
ATTUNE_API int64_t attune_set_length(attune_set *set, uint32_t sequence);
/* Lets sequence `to` go on from where `from` is, whatever it was before: a
 * prompt that several texts share is computed once. Copies what `from` has. */
ATTUNE_API attune_status attune_set_fork(attune_set *set, uint32_t from,
                                         uint32_t to);
/* As attune_session_rewind. Length 0 empties a sequence. */
ATTUNE_API attune_status attune_set_rewind(attune_set *set, uint32_t sequence,
                                           int64_t length);
/* Writes a sequence to `data`, if `capacity` bytes are enough, and returns how
 * many bytes it takes, or -1. A sequence of a set of the same compiled model
 * can go on from them, in another process, too; anything else is refused:
 * ATTUNE_BAD_INPUT. For a model on the CPU. */
ATTUNE_API int64_t attune_set_save(attune_set *set, uint32_t sequence,
                                   void *data, int64_t capacity);
ATTUNE_API attune_status attune_set_restore(attune_set *set, uint32_t sequence,
                                            const void *data, int64_t bytes);
/* As attune_session_choose_adapter. Sequences of several adapters are computed
 * in one step. */
ATTUNE_API attune_status attune_set_choose_adapter(attune_set *set,
                                                   uint32_t sequence,
                                                   const char *name);
ATTUNE_API void attune_set_close(attune_set *set);

/* Added to the logit of a token. */
typedef struct attune_logit_bias {
  int64_t id;
  double bias; /* -1000 to 1000 */
} attune_logit_bias;

/* How speculative decoding went, see attune_generate_options. */
typedef struct attune_guess_counts {
  int64_t steps;    /* of the model, after the one that reads the prompt */
  int64_t guesses;  /* that these steps checked */
  int64_t accepted; /* of them */
  int64_t tokens;   /* that these steps gave */
} attune_guess_counts;

/* Loads a draft: a smaller model in a shared library that Attune compiled, with
 * the same tokenizer. It guesses tokens for attune_generate where
 * `draft_tokens` asks for it. Kept until another one is loaded, or with null
 * none, or until the instance is closed. ATTUNE_BAD_INPUT: the file is no such
 * library. */
ATTUNE_API attune_status attune_load_draft(attune_instance *instance,
                                           const char *path);

/* Zeroed means: greedy, up to the end of the context, stop at an end token.
 * Numbers out of range are ATTUNE_BAD_CALL. */
typedef struct attune_generate_options {
  size_t struct_size;
  int64_t max_new_tokens;
  double temperature; /* 1e-5 to 1000: sample */
  int64_t top_k;
  double top_p; /* 0 means 1 */
  double min_p;
  double repetition_penalty; /* 0 means 1 */
  uint64_t seed;
  int32_t ignore_eos;
  /* What is zero here is as the model's generation_config.json says. */
  int32_t use_model_settings;
  double frequency_penalty; /* per occurrence in the new text */
  double presence_penalty;  /* once, if the new text has the token */
  int64_t no_repeat_ngram;  /* tokens in a row that never come again */
  int64_t min_new_tokens;   /* no end token before so many */
  const attune_logit_bias *logit_biases;
  int64_t num_logit_biases;
  /* Speculative decoding: one step checks several guesses of the next tokens,
   * which costs little more than a step of one token. Greedy texts stay the
   * same, and texts drawn by `temperature` follow the same distribution. How
   * many guesses a step checks, 1 to 64 (0: none), of either kind: of the draft
   * that was loaded (4 is a good number), or of what followed the last tokens
   * where they stood before in the text (8). For a model on the CPU whose
   * caches are keys and values of its tokens; others refuse: ATTUNE_BAD_INPUT.
   */
  int64_t draft_tokens;
  int64_t lookup_tokens;
  attune_guess_counts *guess_counts; /* gets how it went; or null */
  /* What the image tokens of the prompt stand for. The prompt has one for each
   * picture, or all that pictures have. */
  attune_picture *const *pictures;
  int64_t num_pictures;
} attune_generate_options;

/* Called with each new token; return 0 to stop. */
typedef int (*attune_token_callback)(void *context, int64_t id);

/* Continues the prompt; an encoder-decoder encodes it and starts from its own
 * first token. */
ATTUNE_API attune_status attune_generate(attune_instance *instance,
                                         const int64_t *prompt, int64_t count,
                                         const attune_generate_options *options,
                                         attune_token_callback on_token,
                                         void *context);

/* The tokenizer that the model was compiled with. attune_encode returns the
 * number of ids, writing at most `capacity`; attune_decode the number of bytes,
 * likewise, with special tokens left out and no terminating zero. Both return
 * -1 on failure. */
ATTUNE_API int64_t attune_encode(attune_instance *instance, const char *text,
                                 size_t length, int64_t *ids, int64_t capacity);
ATTUNE_API int64_t attune_decode(attune_instance *instance, const int64_t *ids,
                                 int64_t count, char *text, int64_t capacity);

/* The command line of a compiled executable; returns its exit code. */
ATTUNE_API int attune_cli_main(const attune_model_descriptor *model, int argc,
                               char **argv);

#ifdef __cplusplus
}
#endif

#endif /* ATTUNE_RUNTIME_ATTUNE_H */
