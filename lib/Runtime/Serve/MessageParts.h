//===- MessageParts.h - What messages consist of ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_MESSAGEPARTS_H
#define ATTUNE_LIB_RUNTIME_SERVE_MESSAGEPARTS_H

#include "RequestFields.h"

#include "attune/Runtime/Picture.h"

#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// The bytes of a URL "data:image/TYPE;base64,..."; false, with a reason, of
/// any other.
bool decodeDataUrl(std::string_view url, std::string &bytes,
                   std::string &problem);

/// Gives calls in messages that were read the texts of arguments that they were
/// `given` with. False: there is none.
bool restoreArguments(JsonValue &messages, const JsonValue &given);

/// Reads the messages of one request.
class MessageReader {
public:
  /// A text has `capacity` tokens at most, and all pictures of a request
  /// `mostPixels`: reading them takes memory and time before the model sees
  /// them.
  /// `keepsParts`: the template reads contents in parts.
  MessageReader(const ModelInfo &model, int64_t capacity, uint64_t mostPixels,
                bool keepsParts, RequestError &error)
      : model(model), capacity(capacity), pixelsLeft(mostPixels),
        keepsParts(keepsParts), error(error) {}

  /// Checks a message and brings it into the form that templates read:
  /// arguments of calls as objects, as transformers has them, and a content
  /// without pictures as a text. An answer of calls alone has an empty content.
  /// Reasoning gets all names that templates have for it.
  bool read(JsonValue &message);
  /// Pictures of all messages, in their order.
  std::vector<PicturePtr> pictures;

private:
  bool readParts(JsonValue &content, bool isUser);
  bool readPicture(const JsonValue &part);
  bool readArguments(JsonValue &call);
  bool fail(const std::string &what, const char *code = "") {
    return error.set("'messages': " + what, "messages", code);
  }

  const ModelInfo &model;
  int64_t capacity;
  int64_t tokens = 0; ///< of the pictures
  uint64_t pixelsLeft;
  /// Bytes of calls' arguments, whose values take a hundred times the memory.
  size_t argumentsLeft = size_t(2) << 20;
  bool keepsParts;
  RequestError &error;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_MESSAGEPARTS_H
