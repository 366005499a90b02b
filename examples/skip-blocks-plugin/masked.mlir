// A mask for each batch, as padding has it; blocks of 16 keys.
func.func @masked(%q: tensor<?x4x?x16xf32>, %k: tensor<?x4x?x16xf32>, %mask: tensor<?x1x1x?xi1>) -> tensor<?x4x?x16xf32> {
  %y = attune.attention %q, %k, %k scale 0.25 mask %mask : tensor<?x1x1x?xi1> {attune.key_block = 16 : i64}
    : tensor<?x4x?x16xf32>, tensor<?x4x?x16xf32>, tensor<?x4x?x16xf32> -> tensor<?x4x?x16xf32>
  return %y : tensor<?x4x?x16xf32>
}
