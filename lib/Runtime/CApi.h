//===- CApi.h - What the parts of the C interface share ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CAPI_H
#define ATTUNE_LIB_RUNTIME_CAPI_H

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Guess.h"
#include "attune/Runtime/Picture.h"
#include "attune/Runtime/Tokenizer.h"
#include "attune/Runtime/attune.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pthread.h>

struct attune_instance {
  std::unique_ptr<attune::runtime::CompiledModel> model;
  std::unique_ptr<attune::runtime::Invocation> invocation;
  std::unique_ptr<attune::runtime::Tokenizer> tokenizer;
  /// Null: none was loaded.
  std::unique_ptr<attune::runtime::DraftModel> draft;
  std::vector<std::pair<std::string, int64_t>> dims;
  std::vector<attune::runtime::Buffer> outputs;
  std::vector<const attune::runtime::ArgInfo *> inputInfos, outputInfos;
  std::vector<attune_session *> sessions; ///< that are open
  std::vector<attune_set *> sets;         ///< that are open
  std::vector<attune_picture *> pictures; ///< that are open
  /// Held by calls of sets, which may come from any thread.
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
};

struct attune_session {
  attune_instance *instance = nullptr; ///< null: it was closed first
  /// Null then, too.
  std::unique_ptr<attune::runtime::Session> session;
};

namespace attune::runtime {

/// Keep the message of this thread's last failure.
attune_status failCall(const Error &error);
attune_status failCall(attune_status status, const std::string &what);

/// The adapter of an empty session; null: none.
attune_status chooseSessionAdapter(const ModelInfo &info, Session &session,
                                   const char *name);

/// False, with an error, where nothing can be asked of the session any more.
bool isOpen(const attune_session *session);

/// The pictures of a call, if all are the instance's.
attune_status takePictures(const attune_instance &instance,
                           attune_picture *const *given, int64_t count,
                           std::vector<PicturePtr> &pictures);
/// Lets a session see pictures, if those that it has read stay the first.
attune_status seeInSession(const attune_instance &instance, Session &session,
                           attune_picture *const *given, int64_t count);

/// The instance goes: its sets are to refuse what they are asked from now on.
void abandonSets(attune_instance &instance);
/// And pictures leave its memory.
void abandonPictures(attune_instance &instance);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CAPI_H
