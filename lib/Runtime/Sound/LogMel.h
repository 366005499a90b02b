//===- LogMel.h - What Whisper hears ----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SOUND_LOGMEL_H
#define ATTUNE_LIB_RUNTIME_SOUND_LOGMEL_H

#include <cstdint>
#include <vector>

namespace attune::runtime {

/// The logarithms of power in bands of the mel scale, as transformers'
/// WhisperFeatureExtractor has them.
///
/// Frame t is the Fourier transform of `window` samples around sample t * hop,
/// under a Hann window; beyond its ends the sound is reflected. A band is a
/// triangle over bins, between points that are equally far apart on Slaney's
/// mel scale from 0 to half the rate, and of area 1 in hertz; its power P
/// becomes L = log10(max(P, 1e-10)), and with M the largest L of all, the
/// result (max(L, M - 8) + 4) / 4.
class LogMel {
public:
  LogMel(int64_t rate, int64_t window, int64_t hop, int64_t bands);

  int64_t countFrames(uint64_t samples) const { return int64_t(samples) / hop; }
  /// [bands, frames] of a sound of more than window / 2 samples.
  std::vector<float> compute(const std::vector<float> &samples) const;

private:
  struct Complex {
    double re, im;
  };
  struct Band {
    int64_t first; ///< bin
    std::vector<double> weights;
  };
  void addBands(int64_t rate);
  void transform(int64_t size, const double *in, int64_t stride, Complex *out,
                 Complex *parts) const;

  int64_t window, hop;
  std::vector<double> shape;   ///< of the window
  std::vector<Complex> powers; ///< of the window-th root of 1
  std::vector<Band> bands;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SOUND_LOGMEL_H
