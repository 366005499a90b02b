//===- CApi.cpp - Embedding a compiled model ------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CApi.h"

#include <algorithm>
#include <cstring>

using namespace attune::runtime;

static_assert(ATTUNE_BOOL == static_cast<int>(DType::Bool) &&
                  ATTUNE_U16 == static_cast<int>(DType::U16) &&
                  ATTUNE_F32 == static_cast<int>(DType::F32) &&
                  ATTUNE_F64 == static_cast<int>(DType::F64),
              "attune_dtype follows DType");

/// More ids than this are no text but a mistake, which must not become a demand
/// for memory.
static constexpr int64_t mostIds = int64_t(1) << 32;

// Plain memory: a thread may end after its library is gone.
static thread_local char lastError[1024] = "no error";

static attune_status fail(const Error &error) {
  size_t length = std::min(error.message.size(), sizeof(lastError) - 1);
  std::memcpy(lastError, error.message.data(), length);
  lastError[length] = '\0';
  return error.code ? static_cast<attune_status>(error.code)
                    : ATTUNE_INTERNAL_ERROR;
}

static attune_status badCall(const char *what) {
  Error error;
  error.set(ATTUNE_BAD_CALL, what);
  return fail(error);
}

/// False: the caller gave null, as after an attune_open() that failed.
static bool isOpen(const attune_instance *instance) {
  if (!instance)
    badCall("the instance is null");
  return instance != nullptr;
}

attune_status attune::runtime::failCall(const Error &error) {
  return fail(error);
}
attune_status attune::runtime::failCall(attune_status status,
                                        const std::string &what) {
  Error error;
  error.set(status, what);
  return fail(error);
}

const char *attune_last_error(void) { return lastError; }

/// A caller built against an older header gives a shorter struct.
template <typename T> static T readOptions(const T *options) {
  T result;
  std::memset(&result, 0, sizeof(T));
  if (options)
    std::memcpy(&result, options, std::min(sizeof(T), options->struct_size));
  return result;
}

attune_instance *attune_open(const attune_model_descriptor *model,
                             const attune_open_options *options) {
  if (!model) {
    badCall("attune_open: the model is null");
    return nullptr;
  }
  attune_open_options given = readOptions(options);
  OpenOptions open;
  open.threads = given.threads;
  open.memoryLimit = given.memory_limit;
  open.weights = given.weights;
  open.weightsBytes = given.weights_bytes;
  if (given.weights_path)
    open.weightsPath = given.weights_path;
  Error error;
  std::unique_ptr<attune_instance> instance(new attune_instance());
  instance->model = CompiledModel::open(model, open, error);
  if (!instance->model) {
    fail(error);
    return nullptr;
  }
  if (const EntryInfo *entry = instance->model->entry("forward")) {
    instance->invocation.reset(new Invocation(*instance->model, *entry));
    for (const ArgInfo &arg : entry->args) {
      if (arg.shape.size() > ATTUNE_MAX_RANK) {
        badCall("attune_open: a tensor has too many dimensions");
        return nullptr;
      }
      if (arg.kind == ArgKind::Input)
        instance->inputInfos.push_back(&arg);
      if (arg.kind == ArgKind::Output)
        instance->outputInfos.push_back(&arg);
    }
  }
  return instance.release();
}

void attune_close(attune_instance *instance) {
  if (!instance)
    return;
  for (attune_session *session : instance->sessions) {
    session->session.reset();
    session->instance = nullptr;
  }
  abandonSets(*instance);
  abandonPictures(*instance);
  delete instance;
}

uint32_t attune_num_inputs(const attune_instance *instance) {
  return isOpen(instance) ? static_cast<uint32_t>(instance->inputInfos.size())
                          : 0;
}

uint32_t attune_num_outputs(const attune_instance *instance) {
  return isOpen(instance) ? static_cast<uint32_t>(instance->outputInfos.size())
                          : 0;
}

static attune_status describe(const std::vector<const ArgInfo *> &args,
                              uint32_t index, attune_tensor_info *info) {
  if (index >= args.size())
    return badCall("there is no tensor of this index");
  const ArgInfo &arg = *args[index];
  std::memset(info, 0, sizeof(*info));
  info->name = arg.name.c_str();
  info->dtype = static_cast<attune_dtype>(arg.dtype);
  info->rank = static_cast<int32_t>(arg.shape.size());
  info->optional = arg.defaultValue != DefaultValue::None;
  for (size_t d = 0; d < arg.shape.size(); ++d) {
    bool symbolic = !arg.shape[d].symbol.empty();
    info->shape[d] = symbolic ? -1 : arg.shape[d].size;
    info->symbols[d] = symbolic ? arg.shape[d].symbol.c_str() : nullptr;
  }
  return ATTUNE_OK;
}

attune_status attune_input_info(const attune_instance *instance, uint32_t index,
                                attune_tensor_info *info) {
  return isOpen(instance) ? describe(instance->inputInfos, index, info)
                          : ATTUNE_BAD_CALL;
}

attune_status attune_output_info(const attune_instance *instance,
                                 uint32_t index, attune_tensor_info *info) {
  return isOpen(instance) ? describe(instance->outputInfos, index, info)
                          : ATTUNE_BAD_CALL;
}

int64_t attune_context(const attune_instance *instance) {
  return isOpen(instance) ? instance->model->info().context : 0;
}

attune_status attune_set_dim(attune_instance *instance, const char *name,
                             int64_t value) {
  if (!isOpen(instance))
    return ATTUNE_BAD_CALL;
  if (!name || value < 0)
    return badCall("attune_set_dim: needs a name and a natural number");
  auto &dims = instance->dims;
  dims.erase(std::remove_if(dims.begin(), dims.end(),
                            [&](const auto &dim) { return dim.first == name; }),
             dims.end());
  if (value)
    dims.emplace_back(name, value);
  return ATTUNE_OK;
}

/// Compares an output the caller has memory for with what will be written.
static bool matches(const attune_tensor &tensor, const TensorDecl &decl) {
  return tensor.dtype == static_cast<attune_dtype>(decl.dtype) &&
         tensor.rank == static_cast<int32_t>(decl.shape.size()) &&
         std::equal(decl.shape.begin(), decl.shape.end(), tensor.shape);
}

/// A tensor of the caller's; false if it lacks something.
static bool readTensor(const attune_tensor &tensor, InputTensor &input) {
  if (!tensor.name || tensor.rank < 0 || tensor.rank > ATTUNE_MAX_RANK ||
      !tensor.data || tensor.dtype < ATTUNE_BOOL || tensor.dtype > ATTUNE_F64)
    return false;
  input.name = tensor.name;
  input.dtype = static_cast<DType>(tensor.dtype);
  input.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  input.data = tensor.data;
  return true;
}

attune_status attune_run(attune_instance *instance, const attune_tensor *inputs,
                         uint32_t num_inputs, attune_tensor *outputs,
                         uint32_t num_outputs) {
  if (!isOpen(instance))
    return ATTUNE_BAD_CALL;
  Error error;
  if (!instance->invocation)
    return badCall("the model has no forward entry");
  Invocation &invocation = *instance->invocation;
  invocation.reset();
  for (const auto &[name, value] : instance->dims)
    if (!invocation.bindDim(name, value, "attune_set_dim", error))
      return fail(error);
  for (uint32_t i = 0; i < num_inputs; ++i) {
    InputTensor input;
    if (!readTensor(inputs[i], input))
      return badCall("attune_run: an input lacks its name, data, type or rank");
    if (!invocation.bindInput(input, error))
      return fail(error);
  }
  if (!invocation.resolve(/*past=*/0, "", error))
    return fail(error);
  const std::vector<TensorDecl> &decls = invocation.outputs();
  instance->outputs.resize(decls.size());
  for (uint32_t i = 0; i < num_outputs; ++i) {
    bool known = false;
    for (const TensorDecl &decl : decls)
      known = known || (outputs[i].name && decl.name == outputs[i].name);
    if (!known)
      return badCall(
          "attune_run: an output has a name the model does not know");
  }
  for (unsigned o = 0; o < decls.size(); ++o) {
    const TensorDecl &decl = decls[o];
    void *memory = nullptr;
    for (uint32_t i = 0; i < num_outputs; ++i) {
      if (decl.name != outputs[i].name || !outputs[i].data)
        continue;
      if (!matches(outputs[i], decl)) {
        error.set(ATTUNE_BAD_CALL, "output '" + decl.name + "' is " +
                                       dtypeName(decl.dtype) + " " +
                                       formatShape(decl.shape) +
                                       ", not what the caller has room for");
        return fail(error);
      }
      memory = outputs[i].data;
    }
    uint64_t bytes = 0;
    if (!memory && (!byteSize(decl.shape, dtypeBytes(decl.dtype), bytes) ||
                    !instance->outputs[o].reserve(bytes))) {
      error.set(ATTUNE_RESOURCE_LIMIT,
                "no memory for output '" + decl.name + "'");
      return fail(error);
    }
    invocation.setOutput(o, memory ? memory : instance->outputs[o].data());
  }
  if (!invocation.run(error))
    return fail(error);
  for (uint32_t i = 0; i < num_outputs; ++i)
    for (unsigned o = 0; o < decls.size(); ++o) {
      if (decls[o].name != outputs[i].name || outputs[i].data)
        continue;
      outputs[i].dtype = static_cast<attune_dtype>(decls[o].dtype);
      outputs[i].rank = static_cast<int32_t>(decls[o].shape.size());
      std::copy(decls[o].shape.begin(), decls[o].shape.end(), outputs[i].shape);
      outputs[i].data = instance->outputs[o].data();
    }
  return ATTUNE_OK;
}

//===----------------------------------------------------------------------===//
// Sessions and generation
//===----------------------------------------------------------------------===//

attune_status attune::runtime::chooseSessionAdapter(const ModelInfo &info,
                                                    Session &session,
                                                    const char *name) {
  if (session.length() > 0)
    return badCall("an adapter is chosen before the first token; what is "
                   "cached is of another one");
  Error error;
  int64_t number = 0;
  if (name && !info.findAdapter(name, number, error))
    return fail(error);
  session.setAdapter(number);
  return ATTUNE_OK;
}

uint32_t attune_num_adapters(const attune_instance *instance) {
  return isOpen(instance) ? uint32_t(instance->model->info().adapters.size())
                          : 0;
}

const char *attune_adapter_name(const attune_instance *instance,
                                uint32_t index) {
  return index < attune_num_adapters(instance)
             ? instance->model->info().adapters[index].c_str()
             : nullptr;
}

attune_status attune_choose_adapter(attune_instance *instance,
                                    const char *name) {
  if (!isOpen(instance))
    return ATTUNE_BAD_CALL;
  Error error;
  return instance->model->chooseAdapter(name ? name : "", error) ? ATTUNE_OK
                                                                 : fail(error);
}

attune_session *attune_session_open(attune_instance *instance, int64_t batch,
                                    int64_t capacity) {
  if (!isOpen(instance))
    return nullptr;
  if (capacity == 0)
    capacity = instance->model->info().context;
  if (batch <= 0 || capacity <= 0) {
    badCall("attune_session_open: batch and capacity must be positive");
    return nullptr;
  }
  Error error;
  std::unique_ptr<attune_session> session(new attune_session());
  session->session = Session::create(*instance->model, batch, capacity, error);
  if (!session->session) {
    fail(error);
    return nullptr;
  }
  session->instance = instance;
  instance->sessions.push_back(session.get());
  return session.release();
}

bool attune::runtime::isOpen(const attune_session *session) {
  if (session && session->session)
    return true;
  badCall(session ? "the session's instance was closed"
                  : "the session is null");
  return false;
}

attune_status attune_session_step(attune_session *session, const int64_t *ids,
                                  int64_t count) {
  if (!isOpen(session))
    return ATTUNE_BAD_CALL;
  if (!ids || count <= 0)
    return badCall("attune_session_step: needs at least one token");
  Error error;
  return session->session->step(ids, count, error) ? ATTUNE_OK : fail(error);
}

attune_status attune_session_encode(attune_session *session,
                                    const attune_tensor *inputs,
                                    uint32_t num_inputs) {
  if (!isOpen(session))
    return ATTUNE_BAD_CALL;
  std::vector<InputTensor> tensors(num_inputs);
  for (uint32_t i = 0; i < num_inputs; ++i)
    if (!readTensor(inputs[i], tensors[i]))
      return badCall("attune_session_encode: an input lacks its name, data, "
                     "type or rank");
  Error error;
  return session->session->encode(tensors, error) ? ATTUNE_OK : fail(error);
}

const float *attune_session_logits(const attune_session *session) {
  if (!isOpen(session))
    return nullptr;
  Error error;
  const float *logits = session->session->logits(error);
  if (!logits)
    fail(error);
  return logits;
}

int64_t attune_session_vocabulary(const attune_session *session) {
  return isOpen(session) ? session->session->vocabulary() : -1;
}

int64_t attune_session_length(const attune_session *session) {
  return isOpen(session) ? session->session->length() : -1;
}

attune_status attune_session_rewind(attune_session *session, int64_t length) {
  if (!isOpen(session))
    return ATTUNE_BAD_CALL;
  if (length < 0 || length > session->session->length())
    return badCall("attune_session_rewind: there is no such position");
  Error error;
  return session->session->rewind(length, error) ? ATTUNE_OK : fail(error);
}

void attune_session_reset(attune_session *session) {
  if (isOpen(session))
    session->session->reset();
}

attune_status attune_session_choose_adapter(attune_session *session,
                                            const char *name) {
  if (!isOpen(session))
    return ATTUNE_BAD_CALL;
  return chooseSessionAdapter(session->instance->model->info(),
                              *session->session, name);
}

void attune_session_close(attune_session *session) {
  if (session && session->instance) {
    auto &open = session->instance->sessions;
    open.erase(std::remove(open.begin(), open.end(), session), open.end());
  }
  delete session;
}

namespace {
struct Callback {
  attune_token_callback function;
  void *context;
};
} // namespace

attune_status attune_load_draft(attune_instance *instance, const char *path) {
  if (!isOpen(instance))
    return ATTUNE_BAD_CALL;
  std::unique_ptr<DraftModel> draft;
  Error error;
  if (path && !(draft = DraftModel::load(path, error)))
    return fail(error);
  instance->draft = std::move(draft);
  return ATTUNE_OK;
}

/// False: lastError says what is wrong.
static bool readGuessOptions(const attune_instance &instance,
                             const attune_generate_options &given,
                             GenerateOptions &generate) {
  for (int64_t tokens : {given.draft_tokens, given.lookup_tokens})
    if (tokens < 0 || tokens > GenerateOptions::mostGuesses) {
      badCall("attune_generate: draft_tokens and lookup_tokens are 0 to 64");
      return false;
    }
  if (given.draft_tokens && given.lookup_tokens) {
    badCall("attune_generate: draft_tokens and lookup_tokens exclude each "
            "other");
    return false;
  }
  if (given.draft_tokens && !instance.draft) {
    badCall("attune_generate: draft_tokens needs a draft, see "
            "attune_load_draft");
    return false;
  }
  generate.lookup = given.lookup_tokens;
  if (given.draft_tokens) {
    generate.draftModel = instance.draft.get();
    generate.draftTokens = given.draft_tokens;
  }
  return true;
}

/// False: lastError says what is wrong.
static bool readGenerateOptions(const attune_instance &instance,
                                const attune_generate_options &given,
                                GenerateOptions &generate) {
  if (given.max_new_tokens < 0 || given.num_logit_biases < 0 ||
      (given.num_logit_biases > 0 && !given.logit_biases) ||
      !(given.temperature >= 0)) {
    badCall("attune_generate: an option is out of range");
    return false;
  }
  generate.maxNewTokens = given.max_new_tokens ? given.max_new_tokens : -1;
  generate.ignoreEos = given.ignore_eos != 0;
  SamplingOptions &sampling = generate.sampling;
  sampling.greedy = given.temperature == 0;
  sampling.temperature = sampling.greedy ? 1 : given.temperature;
  sampling.topK = given.top_k;
  sampling.topP = given.top_p == 0 ? 1 : given.top_p;
  sampling.minP = given.min_p;
  sampling.repetitionPenalty =
      given.repetition_penalty == 0 ? 1 : given.repetition_penalty;
  sampling.frequencyPenalty = given.frequency_penalty;
  sampling.presencePenalty = given.presence_penalty;
  sampling.noRepeatNgram = given.no_repeat_ngram;
  sampling.minNewTokens = given.min_new_tokens;
  for (int64_t i = 0; i < given.num_logit_biases; ++i)
    sampling.logitBias.emplace_back(given.logit_biases[i].id,
                                    given.logit_biases[i].bias);
  sampling.seed = given.seed;
  Error error;
  if (!sampling.check(ATTUNE_BAD_CALL, error)) {
    fail(error);
    return false;
  }
  if (!given.use_model_settings)
    return true;
  // A field that is not zero counts as given.
  generate.askedSampling = given.temperature != 0;
  const std::pair<const char *, bool> names[] = {
      {"temperature", given.temperature != 0},
      {"top-k", given.top_k != 0},
      {"top-p", given.top_p != 0},
      {"min-p", given.min_p != 0},
      {"repetition-penalty", given.repetition_penalty != 0},
      {"no-repeat-ngram", given.no_repeat_ngram != 0},
      {"min-new-tokens", given.min_new_tokens != 0},
      {"max-new-tokens", given.max_new_tokens != 0}};
  for (auto [name, present] : names)
    if (present)
      generate.given.emplace_back(name);
  std::string taken;
  if (generate.takeSettings(instance.model->info(), taken, error))
    return true;
  fail(error);
  return false;
}

attune_status attune_generate(attune_instance *instance, const int64_t *prompt,
                              int64_t count,
                              const attune_generate_options *options,
                              attune_token_callback on_token, void *context) {
  if (!isOpen(instance))
    return ATTUNE_BAD_CALL;
  if (!prompt || count <= 0 || count > mostIds || !on_token)
    return badCall("attune_generate: needs a prompt and a callback");
  attune_generate_options given = readOptions(options);
  GenerateOptions generate;
  if (!readGenerateOptions(*instance, given, generate) ||
      !readGuessOptions(*instance, given, generate))
    return ATTUNE_BAD_CALL;
  std::vector<int64_t> ids(prompt, prompt + count);
  if (attune_status status = takePictures(
          *instance, given.pictures, given.num_pictures, generate.pictures))
    return status;
  Error error;
  if (!placePictures(instance->model->info(), /*tokenizer=*/nullptr,
                     generate.pictures, ids, error))
    return fail(error);
  GuessCounts counts;
  generate.guessCounts = &counts;
  Callback callback = {on_token, context};
  std::string stoppedBy;
  bool good = generateTokens(
      *instance->model, ids, generate,
      [](void *context, const NewToken &token) {
        auto *callback = static_cast<Callback *>(context);
        return callback->function(callback->context, token.id) != 0;
      },
      &callback, stoppedBy, error);
  if (given.guess_counts)
    *given.guess_counts = {counts.steps, counts.guesses, counts.accepted,
                           counts.tokens};
  return good ? ATTUNE_OK : fail(error);
}

//===----------------------------------------------------------------------===//
// Tokenizer
//===----------------------------------------------------------------------===//

static bool needTokenizer(attune_instance *instance) {
  if (!isOpen(instance))
    return false;
  if (instance->tokenizer)
    return true;
  const ModelInfo &info = instance->model->info();
  if (!info.hasTokenizer()) {
    badCall("the model carries no tokenizer");
    return false;
  }
  Error error;
  instance->tokenizer = Tokenizer::open(info, error);
  if (!instance->tokenizer)
    fail(error);
  return instance->tokenizer != nullptr;
}

int64_t attune_encode(attune_instance *instance, const char *text,
                      size_t length, int64_t *ids, int64_t capacity) {
  if (!text || capacity < 0 || (capacity > 0 && !ids)) {
    badCall("attune_encode: needs a text and room for ids");
    return -1;
  }
  if (!needTokenizer(instance))
    return -1;
  std::vector<int64_t> found;
  Error error;
  if (!instance->tokenizer->encode({text, length}, found, error)) {
    fail(error);
    return -1;
  }
  auto count = static_cast<int64_t>(found.size());
  std::copy(found.begin(), found.begin() + std::min(count, capacity), ids);
  return count;
}

int64_t attune_decode(attune_instance *instance, const int64_t *ids,
                      int64_t count, char *text, int64_t capacity) {
  if (count < 0 || count > mostIds || (count > 0 && !ids) || capacity < 0 ||
      (capacity > 0 && !text)) {
    badCall("attune_decode: needs ids and room for a text");
    return -1;
  }
  if (!needTokenizer(instance))
    return -1;
  std::string bytes = instance->tokenizer->decode(
      std::vector<int64_t>(ids, ids + count), /*skipSpecial=*/true);
  auto size = static_cast<int64_t>(bytes.size());
  std::copy(bytes.begin(), bytes.begin() + std::min(size, capacity), text);
  return size;
}
