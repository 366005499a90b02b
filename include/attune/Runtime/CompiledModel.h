//===- CompiledModel.h - Running a compiled model ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CompiledModel joins a descriptor with its weights and a team of threads.
// Invocation is one call of an entry: sizes are bound from the inputs and
// checked against each other, what is optional and absent is filled in, and the
// outputs go where the caller says. Nothing throws; functions that return false
// fill an Error.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_COMPILEDMODEL_H
#define ATTUNE_RUNTIME_COMPILEDMODEL_H

#include "attune/Runtime/Metadata.h"
#include "attune/Runtime/Model.h"
#include "attune/Runtime/Safetensors.h"
#include "attune/Runtime/ThreadTeam.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime {

/// From this many rows on, kernels give the same bits for each.
constexpr size_t fewRows = 16;

class CudaDevice;
struct Picture;
class Mesh;
class MeshCalls;
class SessionGroup;
class WeightsBlob;

using PicturePtr = std::shared_ptr<Picture>;

struct OpenOptions {
  unsigned threads = 0;     ///< 0: one per available core
  uint64_t memoryLimit = 0; ///< bytes of intermediate results; 0: the machine's
  /// Where the weights are. A pointer wins over a path; with neither they are
  /// sought in the file that the descriptor was loaded from.
  const void *weights = nullptr;
  uint64_t weightsBytes = 0;
  std::string weightsPath;
  /// Weights of a file are read into memory of the process, not mapped.
  bool readsWeights = false;
  /// Seconds that a rank waits for another one before all end; 0: for ever.
  double timeout = 0;
  /// Compare what ranks have computed after each call.
  bool checkRanks = false;
};

class CompiledModel {
public:
  /// `descriptor` must outlive the model, and so must `options.weights`.
  static std::unique_ptr<CompiledModel>
  open(const attune_model_descriptor *descriptor, const OpenOptions &options,
       Error &error);
  ~CompiledModel();

  const ModelInfo &info() const { return modelInfo; }
  const EntryInfo *entry(std::string_view name) const {
    return modelInfo.find(name);
  }
  /// Whether no text begins before something was encoded.
  bool encodes() const {
    const EntryInfo *step = entry("decode");
    return entry("encode") && !(step && step->findInserted());
  }
  /// The adapter that texts are computed with unless a session says otherwise;
  /// empty: none.
  bool chooseAdapter(const std::string &name, Error &error) {
    chosenAdapter = 0;
    return name.empty() || modelInfo.findAdapter(name, chosenAdapter, error);
  }
  int64_t adapter() const { return chosenAdapter; }
  ThreadTeam &team() { return *threads; }
  const uint8_t *weights() const;
  uint64_t weightsBytes() const;

  /// Calls an entry on the whole team, or on the GPU, and on all ranks.
  bool call(const EntryInfo &entry, void **args, Error &error);
  /// The same on this rank alone.
  bool callHere(const EntryInfo &entry, void **args, Error &error);
  /// On a GPU without other ranks: takes the memory for intermediate results
  /// that such a call needs (CudaDevice::rehearse()).
  bool rehearse(const EntryInfo &entry, void **args, Error &error);
  /// Whether this process is a rank that does what the first one says.
  bool follows() const;
  /// Does so until the first rank has done.
  bool follow(Error &error);
  /// Tells other ranks what to do; null: there are none to tell.
  MeshCalls *ranksToTell() const;
  /// Groups of ranks, which share texts, and the number of this one.
  int numGroups() const;
  int group() const;
  /// The first of `count` texts that a group takes; the next group has those
  /// from its own first one on.
  size_t firstOfGroup(size_t count, int group) const {
    auto all = static_cast<size_t>(numGroups());
    return (count * static_cast<size_t>(group) + all - 1) / all;
  }
  /// Another group sends `bytes`, which it has computed, to the first group,
  /// which calls this with the same number.
  void collect(int group, std::string &bytes);
  /// Ends all groups, if there are others.
  void endGroups(const Error &error);
  /// Copies within memory that the model keeps (ModelMemory); the two parts do
  /// not overlap.
  bool copy(uint8_t *to, const uint8_t *from, uint64_t bytes, Error &error);
  /// Exchanges two such parts.
  bool exchange(uint8_t *a, uint8_t *b, uint64_t bytes, Error &error);
  /// Copies from such memory to the caller's, and the other way round.
  bool read(void *to, const uint8_t *from, uint64_t bytes, Error &error);
  bool write(uint8_t *to, const void *from, uint64_t bytes, Error &error);
  /// The GPU that the model runs on; null: the CPU does.
  CudaDevice *device() const { return gpu.get(); }
  /// Why steps do without the persistent kernels that they were compiled with,
  /// known after one of them; empty: nothing is to be said. Any thread may ask.
  std::string whyNotPersistent() const;
  /// The most bytes of intermediate results that were ever in use.
  uint64_t frameHighWater() const;

private:
  CompiledModel();
  /// Finds the variant for this CPU.
  bool chooseCode(Error &error);
  const attune_model_descriptor *descriptor = nullptr;
  ModelInfo modelInfo;
  uint64_t firstEntry = 0; ///< of the variant that runs here
  int64_t chosenAdapter = 0;
  std::unique_ptr<WeightsBlob> blob;
  std::unique_ptr<ThreadTeam> threads;
  std::unique_ptr<Mesh> mesh; ///< null: one process runs all of the model
  std::unique_ptr<CudaDevice> gpu;
  std::unique_ptr<MeshCalls> calls;

  bool openWeights(const OpenOptions &options, Error &error);
  bool openDevice(const OpenOptions &options, Error &error);
  bool uploadWeights(Error &error);
  bool joinRanks(const OpenOptions &options, Error &error);
  /// Whether all ranks are good so far, and the same.
  bool agree(bool good, uint64_t fingerprint, Error &error);
  bool exchangeHere(uint8_t *a, uint8_t *b, uint64_t bytes, Error &error);
};

/// A tensor that the caller owns.
struct InputTensor {
  std::string_view name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  const void *data = nullptr;
  /// Lies in ModelMemory: what an entry gave, as it gave it.
  bool fromModel = false;
};

/// Memory aligned to 64 bytes that grows but never shrinks.
class Buffer {
public:
  Buffer() = default;
  Buffer(Buffer &&other) { swap(other); }
  Buffer &operator=(Buffer &&other) {
    swap(other);
    return *this;
  }
  ~Buffer();
  /// Makes room for `bytes`, with what was there lost; false without memory.
  /// Fresh memory is zero and takes no space until it is touched, then in large
  /// pages where the system has them.
  bool reserve(uint64_t bytes);
  uint8_t *data() const { return memory; }

private:
  void swap(Buffer &other) {
    std::swap(memory, other.memory);
    std::swap(capacity, other.capacity);
  }
  uint8_t *memory = nullptr;
  uint64_t capacity = 0;
};

/// Memory that a model keeps from call to call, where it computes: zero to
/// begin with.
class ModelMemory {
public:
  ModelMemory() = default;
  ModelMemory(ModelMemory &&other) { swap(other); }
  ModelMemory &operator=(ModelMemory &&other) {
    swap(other);
    return *this;
  }
  ~ModelMemory();
  /// Once; `what` names it in messages.
  bool reserve(CompiledModel &model, uint64_t bytes, const char *what,
               Error &error);
  /// Memory of the GPU if the model runs there.
  uint8_t *data() const { return onDevice ? onDevice : host.data(); }
  /// The first `bytes`, where the host can read them: in `copy` if they are
  /// not. Null if that fails.
  const uint8_t *read(Buffer &copy, uint64_t bytes, Error &error) const;

private:
  void swap(ModelMemory &other);
  Buffer host;
  MeshCalls *ranks = nullptr; ///< that have such memory, too
  CudaDevice *device = nullptr;
  uint8_t *onDevice = nullptr;
};

/// One call of an entry. The order is: bindDim and bindInput, resolve, then
/// setOutput for each output, then run; after run another round may follow.
class Invocation {
public:
  Invocation(CompiledModel &model, const EntryInfo &entry);

  /// Starts another round; buffers are kept, bindings are not.
  void reset();
  /// Gives a symbolic size its value. `origin` names the source in messages.
  bool bindDim(std::string_view symbol, int64_t value, std::string_view origin,
               Error &error);
  /// Whether the entry has a size of this name.
  bool hasDim(std::string_view symbol) const;
  /// The value of a size, or -1 while it is unknown.
  int64_t dim(std::string_view symbol) const;
  /// Uses the tensor's own bytes where type and alignment allow, else a
  /// converted copy.
  bool bindInput(const InputTensor &tensor, Error &error);
  /// Gives each sequence its number of positions in the caches, [batch], once
  /// that size is bound. They must stay valid until the call has run, and none
  /// is above resolve()'s `past`.
  bool bindLengths(const int64_t *lengths, Error &error);
  /// The same of the caches of a window: the number of positions they hold, or
  /// that of the longest sequence, and with `lengths` that of each.
  bool bindHeld(int64_t window, int64_t most, const int64_t *lengths,
                Error &error);
  /// Binds the i-th cache of the entry.
  bool bindCache(unsigned i, void *data, Error &error);
  /// Fills in what is absent and works out the outputs. `past` is the number of
  /// positions in the caches; `origin` names the source of the inputs.
  bool resolve(int64_t past, std::string_view origin, Error &error);
  /// Valid after resolve().
  const std::vector<TensorDecl> &outputs() const { return outputDecls; }
  void setOutput(unsigned i, void *data);
  /// Memory for all of them.
  bool bindOutputs(std::vector<Buffer> &buffers, Error &error);
  bool run(Error &error);
  /// In place of run(): see CompiledModel.
  bool rehearse(Error &error);

  const EntryInfo &entry() const { return info; }

private:
  struct Slot {
    bool bound = false;
    std::vector<int64_t> shape;
    /// The memref descriptor: allocated, aligned, offset, sizes, strides.
    std::vector<int64_t> words;
    Buffer copy;
  };
  struct Dim {
    std::string symbol;
    int64_t value = -1;
    std::string origin;
  };

  Dim *findDim(std::string_view symbol);
  bool shapeOf(const ArgInfo &arg, std::vector<int64_t> &shape,
               std::string &unknown) const;
  bool checkIds(const ArgInfo &arg, const Slot &slot, Error &error) const;
  const uint8_t *maskBeside(const ArgInfo &arg, const Slot &slot) const;
  bool fillDefault(const ArgInfo &arg, Slot &slot, int64_t past, Error &error);
  bool checkDerived(Error &error) const;
  bool checkPlaces(Error &error) const;
  bool checkContext(int64_t past, Error &error) const;
  bool collectArguments(std::vector<void *> &args, Error &error);
  void describe(Slot &slot, void *data);

  CompiledModel &model;
  const EntryInfo &info;
  std::vector<Slot> slots;
  std::vector<Dim> dims;
  std::vector<unsigned> outputArgs, cacheArgs;
  std::vector<TensorDecl> outputDecls;
  int64_t pastLength = 0;
  const int64_t *lengths = nullptr; ///< null: all sequences have pastLength
};

/// The encoder's input that pictures are read into; null if there is none.
const ArgInfo *findImageInput(const ModelInfo &model);

/// Autoregressive decoding with a key/value cache.
class Session {
  friend class SessionGroup;

public:
  /// Room for `capacity` positions, in `batch` rows. Fails if the model has no
  /// decode entry.
  static std::unique_ptr<Session> create(CompiledModel &model, int64_t batch,
                                         int64_t capacity, Error &error);
  /// The same of a model that writes a code of each codebook, for which the
  /// other fails: steps take other ids.
  static std::unique_ptr<Session> createOfCodes(CompiledModel &model,
                                                int64_t batch, int64_t capacity,
                                                Error &error);

  /// Encoder-decoders: reads what is to be decoded, before the first step, and
  /// starts over. Inputs that the model does not have are passed over.
  bool encode(const std::vector<InputTensor> &inputs, Error &error);

  /// Models that see: the text's image tokens, those of the past and those to
  /// come, stand for these pictures, in their order. Each is encoded unless it
  /// was. What is cached stays, so it must be of the same pictures.
  bool see(const std::vector<PicturePtr> &pictures, Error &error);
  const std::vector<PicturePtr> &pictures() const { return seen; }
  /// Whether these may come next: image tokens that are cached stand for the
  /// same ones.
  bool mayTurnTo(const std::vector<PicturePtr> &pictures) const;
  /// Encodes a picture ahead of see().
  bool encode(Picture &picture, Error &error);

  /// Appends `count` ids to each row (`ids` is [batch, count], of a model with
  /// codebooks [codebooks, batch, count]) and computes the logits of the last
  /// position: a prompt at first, then a token at a time.
  bool step(const int64_t *ids, int64_t count, Error &error);
  /// Whether stepAll() and rewind() are possible: a model on the CPU, compiled
  /// with the entry `decode_all`, in one row.
  bool canGuess() const { return allTokens != nullptr; }
  /// The same as step() in the one row; gives the logits after each of the
  /// `count` ids, [count, vocabulary], valid until the next step; null: failed.
  const float *stepAll(const int64_t *ids, int64_t count, Error &error);
  /// Forgets all but the first `length` positions. Fails if what the model
  /// keeps does not belong to single positions, or if layers with a window have
  /// forgotten what the next token would see.
  bool rewind(int64_t length, Error &error);
  /// Whether what the model keeps belongs to single positions.
  bool canRewind() const { return keepsTokens; }
  /// Whether rewind() can go to a length.
  bool reaches(int64_t length) const {
    Error ignored;
    return length >= 0 && length <= past && canGoOnFrom(length, ignored);
  }
  /// Takes over the first `length` positions of another session of the model,
  /// with the same capacity and one row, in place of its own. If these are all
  /// positions it takes the logits, too. It has the first `held` of them
  /// already. Fails where rewind() would.
  bool copyFrom(const Session &other, int64_t length, Error &error,
                int64_t held = 0);
  /// The sequence as bytes, countSaved() many, which another session of the
  /// same model can go on from. For one row, without an encoder.
  uint64_t countSaved() const;
  bool save(uint8_t *to, Error &error);
  /// Takes over what save() wrote, of whose sequence it has the first `held`
  /// positions already. What does not fit is refused.
  bool restore(const uint8_t *from, uint64_t bytes, Error &error,
               int64_t held = 0);
  bool canBeSaved() const { return batch == 1 && !encoder; }
  /// Row i goes on from what row `rows[i]` has appended.
  bool select(const int64_t *rows, Error &error);
  /// [batch, vocabulary], valid until the next step. On a GPU they stay there
  /// until they are asked for, which may fail: null.
  const float *logits(Error &error);
  /// The most candidates that a step can give; 0: the model gives none, and its
  /// logits are at hand.
  int64_t mostCandidates() const;
  /// Steps from now on also give the `count` largest logits of each row, by
  /// attune.top_k's order.
  void setCandidates(int64_t count) { candidates = count; }
  const int64_t *candidateIds() const {
    return reinterpret_cast<const int64_t *>(candidateIdsBuffer.data());
  }
  const float *candidateLogits() const {
    return reinterpret_cast<const float *>(candidateLogitsBuffer.data());
  }
  int64_t vocabulary() const { return vocabularySize; }
  /// The number of the adapter of all rows, from an empty sequence on: what is
  /// cached belongs to it.
  void setAdapter(int64_t number) { adapterNumber = number; }
  int64_t adapter() const { return adapterNumber; }
  int64_t length() const { return past; }
  int64_t capacity() const { return maxLength; }
  /// Forgets everything that was appended.
  void reset() {
    past = 0;
    for (Ring &ring : rings)
      ring.first = 0;
    history.clear();
  }

private:
  Session(CompiledModel &model, const EntryInfo &entry)
      : model(model), invocation(model, entry), adapterNumber(model.adapter()) {
  }
  /// create(), or without memory for caches, whose places the group sets.
  static std::unique_ptr<Session> create(CompiledModel &model, int64_t batch,
                                         int64_t capacity, bool ownsCaches,
                                         Error &error);
  uint64_t fingerprint() const;
  bool checkSaving(Error &error) const;
  /// Takes the memory that a step of `count` tokens needs in the longest text,
  /// of an empty session.
  bool rehearse(int64_t count, Error &error);
  bool rehearse(Invocation &call, int64_t count, Error &error);
  void setOutputs(Invocation &call);
  template <typename F> bool visitCaches(int64_t held, F each);
  bool copyCache(size_t number, const Session &other, uint64_t held,
                 uint64_t length, Error &error);
  bool takeMemory(const Session &from, int64_t length, Error &error);
  bool bindMemory(Invocation &call, Error &error);
  bool orderVectors(const int64_t *ids, int64_t count, Error &error);
  /// Binds the adapter of each row, if the entry has adapters. They stay in
  /// `kept` until the call has run.
  static bool bindAdapters(Invocation &call, std::vector<int64_t> given,
                           std::vector<int64_t> &kept, Error &error);
  bool run(const int64_t *ids, int64_t count, Error &error);
  bool bind(Invocation &call, const int64_t *ids, int64_t count, Error &error);

  /// The caches of layers with a window hold less than the whole text: the
  /// positions from `first` on (SessionRings.cpp).
  struct Ring {
    int64_t window = 0, slack = 0;
    int64_t room = 0; ///< positions that there is memory for
    int64_t first = 0;
    std::string capacity; ///< the name of `room` in shapes
  };
  void addRings();
  Ring *findRing(int64_t window);
  int64_t firstOf(int64_t window) const;
  bool canGoOnFrom(int64_t length, Error &error) const;
  int64_t countPiece(int64_t left) const;
  bool makeRoom(int64_t count, Error &error);
  bool dropRows(const Ring &ring, int64_t count, Error &error);
  bool bindRings(Invocation &call, Error &error) const;
  template <typename F>
  bool inPieces(Invocation &call, const int64_t *ids, int64_t count,
                Error &error, F setOutputs);

  /// The results of other streams that decoding reads: outputs of the encoder
  /// and the masks it was given.
  struct Memory {
    std::string name;
    DType dtype = DType::F32;
    std::vector<int64_t> shape;
    Buffer given;     ///< by the caller,
    ModelMemory made; ///< or by the encoder
  };
  CompiledModel &model;
  Invocation invocation;
  std::unique_ptr<Invocation> encoder;
  std::unique_ptr<Invocation> allTokens; ///< null: guesses are not possible
  /// Steps of tokens that see each other in both directions; null: none do.
  std::unique_ptr<Invocation> spans;
  Buffer allLogits;
  std::vector<Memory> memory;
  bool encoded = false;
  std::vector<PicturePtr> seen; ///< that `memory` is of
  /// Vectors that stand in the places of tokens: the input of a step, null if
  /// there is none; where such tokens were; and what is bound while there are
  /// no vectors.
  const ArgInfo *inserted = nullptr;
  std::vector<int64_t> insertedAt;
  std::vector<float> noVector;
  bool bindInserted(Invocation &call, Error &error);
  bool bindNothingSeen(Invocation &call, const ArgInfo &arg, int64_t &before,
                       Error &error);
  void noteInserted(const int64_t *ids, int64_t count);
  /// The next tokens that a step can have together: those of one picture, or
  /// those up to the next one.
  struct Span {
    int64_t count = 0;
    bool seeEachOther = false;
  };
  bool findSpan(const int64_t *ids, int64_t count, int64_t left, Span &span,
                Error &error);
  bool checkRows(const int64_t *ids, int64_t count, int64_t length,
                 Error &error) const;
  int64_t countVectors() const;
  void forgetTakenBack();
  /// All vectors that the text sees; nothing while later tokens take some.
  std::optional<int64_t> vectorsRead();
  /// A cache is [layers, rows, bytes of one]. One row of all layers has
  /// `planes` planes of positions, or one plane without any: a state. With
  /// positions outside, a row has one plane, and layers are equal parts of it.
  struct Cache {
    bool outside = false;
    bool paged = false; ///< the group maps memory to it as the text grows
    ModelMemory data;
    uint8_t *place = nullptr; ///< in `data`, or in the memory of a group
    uint64_t layers = 0, rowBytes = 0;
    uint64_t planes = 1, positionBytes = 0;
    int64_t window = 0; ///< 0: it is no ring
    /// Where ranks share the positions of a sequence: those that are here, on
    /// the first rank, which has the most; 0: all are.
    uint64_t share = 0;
    /// The bytes of `length` positions in a plane.
    uint64_t bytesOf(uint64_t length) const {
      if (positionBytes)
        return (share ? std::min(length, share) : length) * positionBytes;
      return length ? layers * rowBytes : 0;
    }
  };
  /// Takes a row that a step for several sessions gave.
  void setLogits(const uint8_t *from);
  /// Takes the memory that setLogits() needs.
  bool reserveLogits(Error &error);
  /// After a call that failed: what the session was at `before` tokens, or
  /// empty. `ran`: the model may have changed its state.
  void undo(int64_t before, bool ran);
  uint64_t bytesHeld(const Cache &cache) const {
    return cache.bytesOf(static_cast<uint64_t>(past - firstOf(cache.window)));
  }
  std::vector<Cache> caches;
  SessionGroup *owner = nullptr; ///< of paged caches
  unsigned numberOfOwner = 0;    ///< which session it is there
  std::vector<Ring> rings;
  std::vector<int64_t> idsOfPiece;
  bool keepsTokens = true; ///< and nothing that no step can take back
  ModelMemory logitsMemory;
  Buffer logitsCopy; ///< of the last step, if `copied`
  bool copied = false;
  Buffer candidateIdsBuffer, candidateLogitsBuffer;
  ModelMemory spare;                 ///< as large as the largest cache's layer
  std::vector<std::string> idsNames; ///< one, or one a codebook
  int64_t rowsOfIds() const {
    return batch * static_cast<int64_t>(idsNames.size());
  }
  int64_t adapterNumber;
  std::vector<int64_t> adapterOfRows;
  /// Ids that each row has appended, kept while the model may want them again
  /// (EntryInfo::recomputeBeyond).
  std::vector<std::vector<int64_t>> history;
  unsigned logitsOutput = 0;
  /// Outputs with the candidates; -1: there are none.
  int idsOutput = -1, valuesOutput = -1;
  int64_t candidates = 0;
  int64_t batch = 1, maxLength = 0, past = 0, vocabularySize = 0;
  int64_t room = 0; ///< of caches that hold all positions, or a share of them
};

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_COMPILEDMODEL_H
