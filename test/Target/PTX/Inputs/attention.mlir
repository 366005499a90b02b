module attributes {attune.name = "model"} {
  func.func @forward(%q: tensor<1x4x300xWIDTHxbf16> {attune.kind = "input", attune.name = "q", attune.shape = [1, 4, 300, WIDTH]}, %k: tensor<1x4x300xWIDTHxbf16> {attune.kind = "input", attune.name = "k", attune.shape = [1, 4, 300, WIDTH]}, %v: tensor<1x4x300xWIDTHxbf16> {attune.kind = "input", attune.name = "v", attune.shape = [1, 4, 300, WIDTH]}) -> (tensor<1x4x300xWIDTHxbf16> {attune.kind = "output", attune.name = "y", attune.shape = [1, 4, 300, WIDTH]}) attributes {attune.entry} {
    %y = attune.attention %q, %k, %v scale 0.125 causal <bottom_right> : tensor<1x4x300xWIDTHxbf16>, tensor<1x4x300xWIDTHxbf16>, tensor<1x4x300xWIDTHxbf16> -> tensor<1x4x300xWIDTHxbf16>
    return %y : tensor<1x4x300xWIDTHxbf16>
  }
}
