//===- Chat.h - Conversations with a model ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chat template makes a text of the messages so far, the tokenizer ids of
// the text, and the model goes on from there. From turn to turn only ids that
// the cache does not hold yet are computed.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_CHAT_H
#define ATTUNE_RUNTIME_CHAT_H

#include "attune/Runtime/ChatTemplate.h"
#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Tokenizer.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime {

struct ChatMessage {
  std::string role, content;
  std::vector<PicturePtr> pictures; ///< that it shows
  /// The content says where they are; else they come before it.
  bool placesPictures = false;
  /// Of an answer: what the model wrote before it to think.
  std::string reasoning = {};

  void show(const ModelInfo &model, const Tokenizer &tokenizer,
            const std::vector<PicturePtr> &all);
};

/// Makes ids of messages.
class ChatPrompt {
public:
  /// The model's template, or the one of the options: a file, or one of the
  /// model's by its name. Fails if there is none.
  static std::unique_ptr<ChatPrompt>
  create(const ModelInfo &info, const TemplateOptions &options, Error &error);

  bool renderText(const std::vector<ChatMessage> &messages, bool addPrompt,
                  std::string &text, Error &error) const;
  /// The ids of what comes before the model's next message. The template
  /// names the special tokens, so that the tokenizer adds none.
  bool encode(const Tokenizer &tokenizer,
              const std::vector<ChatMessage> &messages,
              std::vector<int64_t> &ids, Error &error) const;
  struct Request {
    const JsonValue *tools = nullptr;     ///< that the model may call; or null
    const JsonValue *variables = nullptr; ///< more of them, or null
    bool opensAnswer = true;    ///< the text ends where the answer begins
    bool continuesLast = false; ///< it ends where the last message's text does
  };
  /// The text of messages as templates read them, objects with a role and a
  /// content, as it becomes ids.
  bool render(const JsonValue &messages, const Request &request,
              std::string &text, Error &error) const;
  /// Whether the template shows what a system says.
  bool takesSystem() const;
  /// Whether the template reads a content in parts.
  bool takesParts() const { return readsParts; }
  /// Whether the template tells the model of tools.
  bool takesTools() const { return toolUse || chat->mentions("tools"); }
  /// Whether the template has this text: it shows how the model's answers are
  /// marked.
  bool contains(std::string_view text) const {
    return chat->contains(text) || (toolUse && toolUse->contains(text));
  }
  /// Ids that end a message beside those that the model names: the template's
  /// end of a turn and the tokenizer's end token.
  std::vector<int64_t> findEnds(const Tokenizer &tokenizer) const;

private:
  bool render(const ChatTemplate &chat, JsonValue all, JsonValue messages,
              bool addPrompt, std::string &text, Error &error) const;
  bool rendersTexts(bool asParts) const;
  std::unique_ptr<ChatTemplate> parse(const std::string &source,
                                      Error &error) const;
  bool encodeText(const Tokenizer &tokenizer, const std::string &text,
                  size_t pictures, std::vector<int64_t> &ids,
                  Error &error) const;

  std::unique_ptr<ChatTemplate> chat;
  /// The model's template for messages with tools; null: the same one.
  std::unique_ptr<ChatTemplate> toolUse;
  std::string place; ///< of the template, for messages
  /// The template reads a content in parts; it passes over one that is a text.
  bool readsParts = false, wantsParts = false;
  JsonValue variables;
  JsonValue images; ///< how the model sees them
};

/// The messages that ask for `text`: the system's, if there is one, and this.
std::vector<ChatMessage> startChat(const TemplateOptions &options,
                                   const std::string &text);

struct ChatOptions {
  TemplateOptions chat;
  GenerateOptions generate;        ///< limits and sampling alone
  int64_t context = -1;            ///< most tokens; -1: the model's context
  std::vector<std::string> images; ///< files that the first message shows

  static const OptionSpecs &specs();
  bool set(const ParsedOption &option, bool &mine, Error &error);
  bool finish(Error &error);
};

/// Talks with whoever is at the standard input: on a terminal with a line
/// editor, else a line a turn. Answers go to `out`.
bool executeChat(CompiledModel &model, const ChatOptions &options, FILE *out,
                 const Messages &messages, Error &error);

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_CHAT_H
