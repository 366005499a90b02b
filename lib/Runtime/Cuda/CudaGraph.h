//===- CudaGraph.h - Many launches handed over at once ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A decoded token is some hundred short kernels, and starting them one by one
// takes longer than they do. So launches are collected first. If an entry
// launches the same kernels in the same order for the second time, they become
// a graph of the driver. From then on only nodes with new sizes or arguments
// are updated, and one call starts all. Any argument may change: positions,
// sizes of the caches and addresses are compared as words.
//
// A kernel may start while the one before still runs, and waits inside: what a
// launch costs on the device is hidden then, and weights are fetched early.
//
// Of launches that a persistent kernel has the code of, that one is started:
// in place of all, or of those between two exchanges.
//
// A driver without graphs, or one that fails to make one, gets the launches one
// by one.
//
// What ranks exchange stands among the launches. NCCL has no nodes to add to a
// graph, but what a stream is told while it is captured becomes some, and the
// nodes of kernels are known from there. An exchange is part of a graph on all
// ranks or on none: they agree before each start.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CUDA_CUDAGRAPH_H
#define ATTUNE_LIB_RUNTIME_CUDA_CUDAGRAPH_H

#include "CudaDriver.h"
#include "CudaPersistent.h"

#include <array>
#include <vector>

namespace attune::runtime {

class Nccl;

/// What a launch is in a persistent kernel: the number of that one, the threads
/// and shared memory of its blocks, and as in StepLaunch.
struct CudaInstruction {
  int64_t kernel = -1; ///< it is none
  int64_t threads, sharedBytes, number, atOnce;
};
/// A launch may be one of steps of one sequence, and of those of several.
using CudaInstructions = std::array<CudaInstruction, 2>;

/// Launches in their order, each with the words of its arguments.
struct CudaLaunches {
  /// In place of a kernel's number: words are the places it reads and writes,
  /// and how many floats.
  enum Exchange : int64_t { Sum = -1, Gather = -2, GatherPositions = -3 };
  struct Launch {
    int64_t kernel; ///< its number in the model's code
    bool isExchange() const { return kernel < 0; }
    unsigned sizes[6];
    unsigned shared;
    bool together; ///< all of its blocks run at once
    size_t firstWord, numWords;
    CudaInstructions instructions;
    /// What it is in this persistent kernel; null: nothing.
    const CudaInstruction *in(int64_t persistent) const;
    size_t firstAccess, numAccesses;
  };
  std::vector<Launch> launches;
  std::vector<uint64_t> words;
  std::vector<CudaAccess> accesses;

  /// With the accesses that were added since the last launch.
  void add(int64_t kernel, const unsigned (&sizes)[6], unsigned shared,
           const uint64_t *arguments, int64_t count,
           const CudaInstructions &instructions = {});
  void exchange(Exchange kind, uint64_t from, uint64_t to, uint64_t count);
  /// The same as one of another list, without its accesses.
  void addAgain(const CudaLaunches &other, size_t i);
  /// Of a launch that there is nothing to do for.
  void dropAccesses();
  bool exchanges() const { return numExchanges > 0; }
  void clear();

private:
  size_t numExchanges = 0;
};

class CudaGraphs {
public:
  CudaGraphs(const CudaDriver &driver, const std::vector<CudaHandle> &kernels)
      : driver(driver), kernels(kernels), persistent(driver, kernels) {}
  /// Kernels wait themselves for the one before (griddepcontrol), and may start
  /// early where the driver knows that.
  void letOverlap() { overlap = true; }
  /// Blocks of so many multiprocessors may start together, if kernels are made
  /// for that.
  void letPersist(unsigned multiprocessors) {
    persistent.allow(multiprocessors);
  }
  /// Launches may be exchanges from now on.
  void join(Nccl *others) { ranks = others; }
  /// While the driver still has its context.
  void clear();

  /// Another call of an entry, or of nothing.
  void begin(const void *entry);
  /// Starts `work`, what the entry has launched since the last time. On failure
  /// `failed` is the launch's kernel, or negative.
  CudaResult start(const CudaLaunches &work, CudaHandle stream,
                   int64_t &failed);
  /// Whether a call of the entry has a graph to prepare.
  bool hasGraph(const void *entry) const;
  /// The entry's next call will probably start `work`: its graph is told so
  /// while the device is busy with this call, of which that changes nothing.
  /// False if it cannot be told.
  bool prepare(const CudaLaunches &work, CudaHandle stream);
  /// Whether ranks may start what they have prepared. Where another one has
  /// not, the next call is start().
  bool agreeOnPrepared();
  /// Starts what the entry's graph was prepared for.
  CudaResult startPrepared(CudaHandle stream);
  /// As CudaPersistent::whyNot().
  std::string whyNotPersistent() const { return persistent.whyNot(); }

private:
  /// The launches of an entry between two waits for the device.
  struct Section {
    const void *entry;
    unsigned number;
    CudaLaunches last;
    CudaHandle graph = nullptr, executable = nullptr;
    std::vector<CudaHandle> nodes;
    CudaProgram program; ///< instead of a graph, if it has a size
    CudaLaunches joined; ///< what joinRuns() makes
    bool isReady() const { return executable || program.isWhole; }
  };
  Section &section();
  /// What a rank has to offer before a start with exchanges.
  enum Offer { Each, Capture, Graph };
  CudaResult startTogether(const CudaLaunches &work, CudaHandle stream,
                           bool worth, int64_t &failed);
  /// `work`, or a list in which persistent kernels stand for what is between
  /// exchanges. The device has their lists.
  const CudaLaunches &joinRuns(Section &section, const CudaLaunches &work,
                               CudaHandle stream);
  bool capture(Section &section, const CudaLaunches &work, CudaHandle stream);
  bool build(Section &section, const CudaLaunches &work);
  bool update(Section &section, const CudaLaunches &work);
  bool rewrite(Section &section, const CudaLaunches &work, CudaHandle stream);
  void destroy(Section &section);
  void destroyGraph(Section &section);
  CudaKernelNode describe(const CudaLaunches &work, size_t i);
  CudaResult launch(const CudaKernelNode &node, CudaHandle stream, bool early);
  CudaResult launchTogether(const CudaKernelNode &node, CudaHandle stream);
  /// Starts one launch or exchange; `early`: it may follow closely.
  CudaResult startOne(const CudaLaunches &work, size_t i, CudaHandle stream,
                      bool early);
  CudaResult startEach(const CudaLaunches &work, CudaHandle stream,
                       int64_t &failed);

  const CudaDriver &driver;
  const std::vector<CudaHandle> &kernels;
  CudaPersistent persistent;
  std::vector<Section> sections;
  const void *entry = nullptr;
  unsigned number = 0; ///< of the next section
  bool usable = true, overlap = false, capturing = false;
  Nccl *ranks = nullptr;
  int agreed = -1;            ///< what agreeOnPrepared() came to; -1: nothing
  std::vector<void *> params; ///< of the launch that is being described
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CUDA_CUDAGRAPH_H
