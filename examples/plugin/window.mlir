// A query of 4 tokens against a cache of 6: once as one op, once as a chain.
func.func @fused(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>,
                 %v: tensor<1x2x6x64xf32>) -> tensor<1x8x4x64xf32> {
  %r = attune.attention %q, %k, %v scale 1.250000e-01 causal <bottom_right>
     : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32>
     -> tensor<1x8x4x64xf32>
  return %r : tensor<1x8x4x64xf32>
}

func.func @chain(%scores: tensor<1x8x4x6xf32>) -> tensor<1x8x4x6xf32> {
  %masked = attune.mask_scores %scores causal <bottom_right> window 2
     : tensor<1x8x4x6xf32>
  return %masked : tensor<1x8x4x6xf32>
}

func.func @encoder(%q: tensor<1x8x6x64xf32>, %k: tensor<1x8x6x64xf32>,
                   %v: tensor<1x8x6x64xf32>) -> tensor<1x8x6x64xf32> {
  %r = attune.attention %q, %k, %v scale 1.250000e-01
     : tensor<1x8x6x64xf32>, tensor<1x8x6x64xf32>, tensor<1x8x6x64xf32>
     -> tensor<1x8x6x64xf32>
  return %r : tensor<1x8x6x64xf32>
}
