//===- CApiPictures.cpp - Pictures, in C ----------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CApi.h"
#include "MutexLock.h"

#include "attune/Runtime/Sight.h"

#include <algorithm>

using namespace attune::runtime;

struct attune_picture {
  attune_instance *instance = nullptr; ///< null: it was closed first
  PicturePtr picture;                  ///< null then, too
};

void attune::runtime::abandonPictures(attune_instance &instance) {
  for (attune_picture *picture : instance.pictures) {
    picture->picture.reset();
    picture->instance = nullptr;
  }
}

static attune_picture *keep(attune_instance *instance, PicturePtr picture,
                            const Error &error) {
  if (!picture) {
    failCall(error);
    return nullptr;
  }
  MutexLock lock(instance->mutex);
  auto *result = new attune_picture();
  result->instance = instance;
  result->picture = std::move(picture);
  instance->pictures.push_back(result);
  return result;
}

attune_picture *attune_picture_read(attune_instance *instance,
                                    const char *path) {
  if (!instance || !path) {
    failCall(ATTUNE_BAD_CALL, "attune_picture_read: needs an instance and a "
                              "file's name");
    return nullptr;
  }
  Error error;
  return keep(instance, readPicture(instance->model->info(), path, error),
              error);
}

attune_picture *attune_picture_parse(attune_instance *instance,
                                     const void *data, size_t bytes) {
  if (!instance || (bytes > 0 && !data)) {
    failCall(ATTUNE_BAD_CALL, "attune_picture_parse: needs an instance and the "
                              "bytes of a file");
    return nullptr;
  }
  Error error;
  uint64_t pixels = kMostPixels;
  return keep(instance,
              parsePicture(instance->model->info(),
                           static_cast<const uint8_t *>(data), bytes,
                           "the picture", pixels, error),
              error);
}

void attune_picture_close(attune_picture *picture) {
  if (picture && picture->instance) {
    MutexLock lock(picture->instance->mutex);
    auto &open = picture->instance->pictures;
    open.erase(std::remove(open.begin(), open.end(), picture), open.end());
    picture->picture.reset();
  }
  delete picture;
}

/// Null: the model sees no pictures.
static const ArgInfo *tokenOf(const attune_instance *instance) {
  return instance && findImageInput(instance->model->info())
             ? &imageToken(instance->model->info())
             : nullptr;
}

int64_t attune_picture_token(const attune_instance *instance) {
  const ArgInfo *token = tokenOf(instance);
  return token ? token->inserted : -1;
}

int64_t attune_picture_length(const attune_instance *instance) {
  const ArgInfo *token = tokenOf(instance);
  return token ? token->each : -1;
}

int64_t attune_picture_tokens(const attune_picture *picture) {
  const ArgInfo *token = picture ? tokenOf(picture->instance) : nullptr;
  return token ? picture->picture->countTokens(token->each) : -1;
}

attune_status attune::runtime::takePictures(const attune_instance &instance,
                                            attune_picture *const *given,
                                            int64_t count,
                                            std::vector<PicturePtr> &pictures) {
  if (count < 0 || (count > 0 && !given))
    return failCall(ATTUNE_BAD_CALL, "the pictures are null");
  for (int64_t i = 0; i < count; ++i) {
    if (!given[i] || given[i]->instance != &instance)
      return failCall(ATTUNE_BAD_CALL,
                      "picture " + std::to_string(i) +
                          (given[i] ? " is of another instance, or of one that "
                                      "was closed"
                                    : " is null"));
    pictures.push_back(given[i]->picture);
  }
  return ATTUNE_OK;
}

attune_status attune::runtime::seeInSession(const attune_instance &instance,
                                            Session &session,
                                            attune_picture *const *given,
                                            int64_t count) {
  std::vector<PicturePtr> pictures;
  if (attune_status status = takePictures(instance, given, count, pictures))
    return status;
  if (!session.mayTurnTo(pictures))
    return failCall(ATTUNE_BAD_CALL,
                    "image tokens of the session stand for other pictures; "
                    "these stay the first, unless it is rewound");
  Error error;
  return session.see(pictures, error) ? ATTUNE_OK : failCall(error);
}

attune_status attune_session_see(attune_session *session,
                                 attune_picture *const *pictures,
                                 uint32_t num_pictures) {
  if (!isOpen(session))
    return ATTUNE_BAD_CALL;
  return seeInSession(*session->instance, *session->session, pictures,
                      num_pictures);
}
