func.func @mlp(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %a = attune.activation %x function <identity> : tensor<?x8xf32>
  %b = attune.activation %a function <relu> : tensor<?x8xf32>
  return %b : tensor<?x8xf32>
}
