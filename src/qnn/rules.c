/* What HTP architectures can compute, as data, and the check of a graph against it before the vendor's compiler sees it. Sources: the rules
 * of ExecuTorch's quantizer (LPBQ from v69, 16-bit products from v73), Qualcomm's release notes (weight sharing from v73), and experiments
 * with each architecture, which tests/qnn/test_soc.c repeats: the library itself refuses 16-bit products before v73 and half precision on
 * some SoCs. It takes block scales on v68 and weight sharing before v73 without a word; what they do there nobody promises. */
#include "qnn/rules.h"

#include "base/log.h"

typedef struct rule {
  const char* name;
  uint32_t arch;
  const char* what;
  const char* instead;
} rule;

static const rule rules[QNN_FEATURE_COUNT] = {
    [QNN_FEATURE_BINARY] = {"binary", 68, "a context binary compiled ahead of time", "choose a newer SoC"},
    [QNN_FEATURE_BLOCK_WEIGHTS] = {"block_weights", 69, "weights with block scales (LPBQ)",
                                   "choose a recipe without weight_block, such as 16a8w or 16a4w"},
    [QNN_FEATURE_WEIGHT_SHARING] = {"weight_sharing", 73, "sharing weights between graphs", "compile one graph (--mode kv)"},
    [QNN_FEATURE_MATMUL_16] = {"matmul_16", 73, "products of two 16-bit activations (a 16-bit KV cache)", "choose a recipe with kv_bits 8"},
    [QNN_FEATURE_FLOAT16] = {"float16", 68, "half precision", "quantize (leave out --skip quantization), or choose another SoC"},
};

const char* qnn_feature_name(qnn_feature feature) {
  return rules[feature].name;
}

uint32_t qnn_feature_arch(qnn_feature feature) {
  return rules[feature].arch;
}

bool qnn_soc_supports(const qnn_soc* soc, qnn_feature feature) {
  return soc->htp_arch >= rules[feature].arch && (feature != QNN_FEATURE_FLOAT16 || soc->float16);
}

genai_status* qnn_soc_require(const qnn_soc* soc, qnn_feature feature, const char* user) {
  if (qnn_soc_supports(soc, feature)) return NULL;
  const rule* broken = &rules[feature];
  if (soc->htp_arch >= broken->arch)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "%s needs %s, which the HTP of %s (v%u) does not have: %s", user,
                               broken->what, soc->name, soc->htp_arch, broken->instead);
  return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "%s needs %s, which takes HTP v%u or newer; %s has v%u: %s", user, broken->what,
                             broken->arch, soc->name, soc->htp_arch, broken->instead);
}

static bool is_16_bits(const ir_tensor* tensor) {
  return tensor->dtype == IR_U16 || tensor->dtype == IR_S16;
}

static genai_status* require_for(const qnn_soc* soc, qnn_feature feature, const ir_graph* graph, const ir_op* op) {
  if (qnn_soc_supports(soc, feature)) return NULL;
  return genai_status_wrap(qnn_soc_require(soc, feature, op->name), GENAI_ERROR_CONFIG_VALIDATION, "graph '%s' cannot be compiled for %s",
                           graph->name, soc->name);
}

genai_status* qnn_check_graph(const qnn_soc* soc, const ir_graph* graph) {
  for (uint32_t i = 0; i < graph->n_ops; ++i) {
    const ir_op* op = graph->ops[i];
    const ir_tensor* second = op->n_inputs > 1 ? graph->tensors[op->inputs[1]] : NULL;
    if (op->kind == IR_CONV2D && second && second->encoding.kind == IR_ENCODING_BLOCK_EXPANSION)
      GENAI_TRY(require_for(soc, QNN_FEATURE_BLOCK_WEIGHTS, graph, op));
    if (op->kind == IR_MATMUL && second && is_16_bits(graph->tensors[op->inputs[0]]) && is_16_bits(second))
      GENAI_TRY(require_for(soc, QNN_FEATURE_MATMUL_16, graph, op));
  }
  return NULL;
}
