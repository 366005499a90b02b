// A schedule: what runs at a point of the pipelines is a sequence of that name.
// At before_tiling there are layers still. Numbers that a layer is annotated
// with take the place of those that the target suggests.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @before_tiling(%model: !transform.any_op {transform.readonly}) {
    %four = transform.param.constant 4 : i64 -> !transform.param<i64>
    %products = transform.structured.match ops{["attune.linear", "attune.quantized_linear", "attune.moe"]} in %model
      : (!transform.any_op) -> !transform.any_op
    transform.annotate %products "attune.tile_rows" = %four : !transform.any_op, !transform.param<i64>

    %queries = transform.param.constant 16 : i64 -> !transform.param<i64>
    %keys = transform.param.constant 32 : i64 -> !transform.param<i64>
    %attention = transform.structured.match ops{["attune.attention"]} in %model
      : (!transform.any_op) -> !transform.any_op
    transform.annotate %attention "attune.query_block" = %queries : !transform.any_op, !transform.param<i64>
    transform.annotate %attention "attune.key_block" = %keys : !transform.any_op, !transform.param<i64>
    transform.yield
  }
}
