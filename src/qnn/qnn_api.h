/* The part of Qualcomm's QNN C API that genai calls, declared anew: layouts, option numbers and function order were established by
 * experiment with QAIRT 2.47.0 to 2.51.0 on x86-64 and agree with the public documentation of the QNN API. Names are ours, apart from
 * operator and parameter names, which are the API's own strings. Every enumeration is 32 bits wide, every handle a pointer, every
 * function returns a 64-bit code whose low 16 bits are the error. */
#ifndef GENAI_QNN_QNN_API_H
#define GENAI_QNN_QNN_API_H

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Types ---- */
typedef enum qnn_api_dtype {
  QNN_API_INT_32 = 0x32,
  QNN_API_UINT_32 = 0x132,
  QNN_API_FLOAT_16 = 0x216,
  QNN_API_FLOAT_32 = 0x232,
  QNN_API_SFIXED_8 = 0x308,
  QNN_API_SFIXED_16 = 0x316,
  QNN_API_SFIXED_32 = 0x332,
  QNN_API_UFIXED_8 = 0x408,
  QNN_API_UFIXED_16 = 0x416,
  QNN_API_UFIXED_32 = 0x432,
  QNN_API_BOOL_8 = 0x508
} qnn_api_dtype;

typedef enum qnn_api_tensor_type {
  QNN_API_APP_WRITE = 0, /* a graph input */
  QNN_API_APP_READ = 1,  /* a graph output */
  QNN_API_NATIVE = 3,    /* between operators */
  QNN_API_STATIC = 4
} qnn_api_tensor_type;

enum { QNN_API_DEFINED = 1, QNN_API_UNDEFINED = 0x7fffffff };

typedef enum qnn_api_encoding {
  QNN_API_SCALE_OFFSET = 0,
  QNN_API_AXIS_SCALE_OFFSET = 1,
  QNN_API_BW_SCALE_OFFSET = 2,
  QNN_API_BW_AXIS_SCALE_OFFSET = 3,
  QNN_API_BLOCKWISE_EXPANSION = 5
} qnn_api_encoding;

/* real = scale * (q + offset) */
typedef struct qnn_api_scale_offset {
  float scale;
  int32_t offset;
} qnn_api_scale_offset;
static_assert(sizeof(qnn_api_scale_offset) == 8, "ScaleOffset");

typedef struct qnn_api_axis_scale_offset {
  int32_t axis;
  uint32_t count;
  qnn_api_scale_offset* values;
} qnn_api_axis_scale_offset;
static_assert(sizeof(qnn_api_axis_scale_offset) == 16, "AxisScaleOffset");

/* A bit width narrower than the storage type. */
typedef struct qnn_api_bw_scale_offset {
  uint32_t bits;
  float scale;
  int32_t offset;
} qnn_api_bw_scale_offset;
static_assert(sizeof(qnn_api_bw_scale_offset) == 12, "BwScaleOffset");

typedef struct qnn_api_bw_axis_scale_offset {
  uint32_t bits;
  int32_t axis;
  uint32_t count;
  float* scales;
  int32_t* offsets; /* NULL: all zero */
} qnn_api_bw_axis_scale_offset;
static_assert(sizeof(qnn_api_bw_axis_scale_offset) == 32, "BwAxisScaleOffset");
static_assert(offsetof(qnn_api_bw_axis_scale_offset, scales) == 16, "BwAxisScaleOffset.scales");

/* Scale of a block = channels[channel].scale * block_scales[channel * blocks_per_axis + block]; block scales are 1..16. */
typedef struct qnn_api_blockwise_expansion {
  int32_t axis;
  qnn_api_scale_offset* channels;
  uint32_t blocks_per_axis;
  uint32_t block_scale_bits;    /* 4; other values are refused */
  uint32_t block_scale_storage; /* 0: one byte each */
  uint8_t* block_scales;
} qnn_api_blockwise_expansion;
static_assert(sizeof(qnn_api_blockwise_expansion) == 40, "BlockwiseExpansion");
static_assert(offsetof(qnn_api_blockwise_expansion, channels) == 8, "BlockwiseExpansion.channels");
static_assert(offsetof(qnn_api_blockwise_expansion, block_scales) == 32, "BlockwiseExpansion.block_scales");

typedef struct qnn_api_quantize {
  uint32_t definition; /* QNN_API_DEFINED or QNN_API_UNDEFINED */
  uint32_t encoding;
  union {
    qnn_api_scale_offset scale_offset;
    qnn_api_axis_scale_offset axis;
    qnn_api_bw_scale_offset bw;
    qnn_api_bw_axis_scale_offset bw_axis;
    qnn_api_blockwise_expansion* expansion;
  } as;
} qnn_api_quantize;
static_assert(sizeof(qnn_api_quantize) == 40, "QuantizeParams");
static_assert(offsetof(qnn_api_quantize, as) == 8, "QuantizeParams union");

typedef struct qnn_api_client_buffer {
  void* data;
  uint32_t size;
} qnn_api_client_buffer;
static_assert(sizeof(qnn_api_client_buffer) == 16, "ClientBuffer");

/* The common head of tensor versions 1 and 2. */
typedef struct qnn_api_tensor_v1 {
  uint32_t id;
  const char* name;
  uint32_t type;
  uint32_t format; /* 0: dense */
  uint32_t dtype;
  qnn_api_quantize quantize;
  uint32_t rank;
  uint32_t* dims;
  uint32_t memory_type; /* 0: client buffer */
  qnn_api_client_buffer buffer;
} qnn_api_tensor_v1;
static_assert(sizeof(qnn_api_tensor_v1) == 112, "TensorV1");
static_assert(offsetof(qnn_api_tensor_v1, name) == 8, "TensorV1.name");
static_assert(offsetof(qnn_api_tensor_v1, type) == 16, "TensorV1.type");
static_assert(offsetof(qnn_api_tensor_v1, dtype) == 24, "TensorV1.dtype");
static_assert(offsetof(qnn_api_tensor_v1, quantize) == 32, "TensorV1.quantize");
static_assert(offsetof(qnn_api_tensor_v1, rank) == 72, "TensorV1.rank");
static_assert(offsetof(qnn_api_tensor_v1, dims) == 80, "TensorV1.dims");
static_assert(offsetof(qnn_api_tensor_v1, memory_type) == 88, "TensorV1.memory_type");
static_assert(offsetof(qnn_api_tensor_v1, buffer) == 96, "TensorV1.buffer");

typedef struct qnn_api_tensor_v2 {
  qnn_api_tensor_v1 head;
  uint8_t* dynamic_dims;
  struct {
    uint32_t type, a, b;
  } sparse;
  uint8_t produced;
} qnn_api_tensor_v2;
static_assert(sizeof(qnn_api_tensor_v2) == 136, "TensorV2");
static_assert(offsetof(qnn_api_tensor_v2, dynamic_dims) == 112, "TensorV2.dynamic_dims");
static_assert(offsetof(qnn_api_tensor_v2, sparse) == 120, "TensorV2.sparse");
static_assert(offsetof(qnn_api_tensor_v2, produced) == 132, "TensorV2.produced");

typedef struct qnn_api_tensor {
  uint32_t version; /* 1 or 2 */
  union {
    qnn_api_tensor_v1 v1;
    qnn_api_tensor_v2 v2;
  } as;
} qnn_api_tensor;
static_assert(sizeof(qnn_api_tensor) == 144, "Tensor");
static_assert(offsetof(qnn_api_tensor, as) == 8, "Tensor union");

typedef struct qnn_api_scalar {
  uint32_t dtype;
  union {
    float f32;
    uint32_t u32;
    int32_t i32;
    uint8_t bool8;
    uint64_t whole;
  } as;
} qnn_api_scalar;
static_assert(sizeof(qnn_api_scalar) == 16, "Scalar");

enum { QNN_API_PARAM_SCALAR = 0, QNN_API_PARAM_TENSOR = 1 };

typedef struct qnn_api_param {
  uint32_t kind;
  const char* name;
  union {
    qnn_api_scalar scalar;
    qnn_api_tensor tensor;
  } as;
} qnn_api_param;
static_assert(sizeof(qnn_api_param) == 160, "Param");
static_assert(offsetof(qnn_api_param, as) == 16, "Param union");

typedef struct qnn_api_op {
  uint32_t version; /* 1 */
  struct {
    const char* name;
    const char* package;
    const char* type;
    uint32_t n_params;
    qnn_api_param* params;
    uint32_t n_inputs;
    qnn_api_tensor* inputs;
    uint32_t n_outputs;
    qnn_api_tensor* outputs;
  } v1;
} qnn_api_op;
static_assert(sizeof(qnn_api_op) == 80, "OpConfig");
static_assert(offsetof(qnn_api_op, v1) == 8, "OpConfig.v1");
static_assert(offsetof(qnn_api_op, v1.n_params) == 8 + 24, "OpConfig.n_params");
static_assert(offsetof(qnn_api_op, v1.inputs) == 8 + 48, "OpConfig.inputs");
static_assert(offsetof(qnn_api_op, v1.outputs) == 8 + 64, "OpConfig.outputs");

/* ---- Configuration: NULL-terminated arrays of pointers to these ---- */
typedef struct qnn_api_config {
  int32_t option;
  union {
    const void* pointer;
    uint64_t value;
  } as;
} qnn_api_config;
static_assert(sizeof(qnn_api_config) == 16, "Config");

enum { QNN_API_CONFIG_CUSTOM = 0 }; /* the option of device, context and graph configurations that carries a backend's own block */

/* HTP device block. Two layouts are in use: the SoC at byte 4 (QAIRT 2.49.40) or at byte 8 (the other versions); a block that holds
 * it in both places serves all. Option 0 is the SoC, and a nonzero word 3 would be read as part of a pointer, so it stays 0. */
typedef struct qnn_api_htp_device {
  _Alignas(8) uint32_t words[4]; /* {0, soc, soc, 0} */
} qnn_api_htp_device;
static_assert(sizeof(qnn_api_htp_device) == 16, "HtpDevice");

/* HTP graph block. */
enum { QNN_API_HTP_GRAPH_OPTIMIZATION = 1, QNN_API_HTP_GRAPH_PRECISION = 2, QNN_API_HTP_GRAPH_VTCM_MB = 3 };
enum { QNN_API_HTP_OPTIMIZATION_LEVEL = 3, QNN_API_HTP_PRECISION_FLOAT16 = 1 };
typedef struct qnn_api_htp_graph {
  int32_t option;
  union {
    struct {
      int32_t type;
      float value;
    } optimization;
    uint32_t u32;
    uint8_t room[56];
    uint64_t align;
  } as;
} qnn_api_htp_graph;
static_assert(sizeof(qnn_api_htp_graph) == 64, "HtpGraph");

/* HTP context block. */
enum { QNN_API_HTP_CONTEXT_WEIGHT_SHARING = 1 };
typedef struct qnn_api_htp_context {
  int32_t option;
  union {
    uint8_t bool8;
    uint64_t whole;
  } as;
} qnn_api_htp_context;
static_assert(sizeof(qnn_api_htp_context) == 16, "HtpContext");

/* ---- What a context binary says of itself ---- */
typedef struct qnn_api_version {
  uint32_t major, minor, patch;
} qnn_api_version;

typedef struct qnn_api_htp_graph_info { /* version 1 */
  uint32_t version;
  uint64_t spill_fill_bytes;
  uint32_t vtcm_bytes, optimization_level;
} qnn_api_htp_graph_info;
static_assert(offsetof(qnn_api_htp_graph_info, vtcm_bytes) == 16, "HtpGraphInfo.vtcm_bytes");

typedef struct qnn_api_htp_context_info { /* version 1 */
  uint32_t version, dsp_arch;
} qnn_api_htp_context_info;

typedef struct qnn_api_graph_info {
  uint32_t version; /* 1 to 3; 1 ends with the outputs */
  struct {
    const char* name;
    uint32_t n_inputs;
    qnn_api_tensor* inputs;
    uint32_t n_outputs;
    qnn_api_tensor* outputs;
    uint32_t n_updates;
    qnn_api_tensor* updates;
    uint32_t blob_info_size;
    const void* blob_info; /* qnn_api_htp_graph_info for the HTP */
    uint32_t start_op, end_op;
  } v3;
} qnn_api_graph_info;
static_assert(sizeof(qnn_api_graph_info) == 88, "GraphInfo");
static_assert(offsetof(qnn_api_graph_info, v3.blob_info_size) == 8 + 56, "GraphInfo.blob_info_size");

typedef struct qnn_api_binary_info {
  uint32_t version; /* 3 */
  struct {
    uint32_t backend_id;
    const char* build_id;
    qnn_api_version core, backend;
    const char* soc;
    qnn_api_version blob;
    uint64_t blob_size;
    uint32_t n_context_tensors;
    qnn_api_tensor* context_tensors;
    uint32_t n_graphs;
    qnn_api_graph_info* graphs;
    const void* platform;
    uint32_t meta_size;
    const void* meta; /* qnn_api_htp_context_info for the HTP */
    uint32_t soc_model;
  } v3;
} qnn_api_binary_info;
static_assert(sizeof(qnn_api_binary_info) == 144, "BinInfo");
static_assert(offsetof(qnn_api_binary_info, v3.soc) == 8 + 40, "BinInfo.soc");
static_assert(offsetof(qnn_api_binary_info, v3.blob_size) == 8 + 64, "BinInfo.blob_size");
static_assert(offsetof(qnn_api_binary_info, v3.graphs) == 8 + 96, "BinInfo.graphs");
static_assert(offsetof(qnn_api_binary_info, v3.meta_size) == 8 + 112, "BinInfo.meta_size");
static_assert(offsetof(qnn_api_binary_info, v3.soc_model) == 8 + 128, "BinInfo.soc_model");

/* ---- Function tables ---- */
typedef void* qnn_api_handle;
typedef void (*qnn_api_unused)(void);
typedef void (*qnn_api_log_callback)(const char* format, uint32_t level, uint64_t timestamp, va_list arguments);
enum { QNN_API_LOG_ERROR = 1, QNN_API_LOG_WARNING = 2, QNN_API_LOG_INFO = 3, QNN_API_LOG_VERBOSE = 4 };

enum { QNN_API_BACKEND_HTP = 6 };

typedef struct qnn_api_interface {
  uint32_t backend_id;
  const char* provider_name;
  qnn_api_version core, backend;
  /* 0 */
  qnn_api_unused property_has_capability;
  uint64_t (*backend_create)(qnn_api_handle log, const qnn_api_config** config, qnn_api_handle* out);
  qnn_api_unused backend_set_config;
  qnn_api_unused backend_get_api_version;
  uint64_t (*backend_get_build_id)(const char** out);
  qnn_api_unused unused_5_to_6[2];
  uint64_t (*backend_validate_op)(qnn_api_handle backend, qnn_api_op op);
  uint64_t (*backend_free)(qnn_api_handle backend);
  uint64_t (*context_create)(qnn_api_handle backend, qnn_api_handle device, const qnn_api_config** config, qnn_api_handle* out);
  /* 10 */
  qnn_api_unused context_set_config;
  uint64_t (*context_get_binary_size)(qnn_api_handle context, uint64_t* out);
  uint64_t (*context_get_binary)(qnn_api_handle context, void* buffer, uint64_t capacity, uint64_t* written);
  uint64_t (*context_create_from_binary)(qnn_api_handle backend, qnn_api_handle device, const qnn_api_config** config, const void* binary,
                                         uint64_t size, qnn_api_handle* out, qnn_api_handle profile);
  uint64_t (*context_free)(qnn_api_handle context, qnn_api_handle profile);
  uint64_t (*graph_create)(qnn_api_handle context, const char* name, const qnn_api_config** config, qnn_api_handle* out);
  qnn_api_unused unused_16_to_17[2];
  uint64_t (*graph_add_node)(qnn_api_handle graph, qnn_api_op op);
  uint64_t (*graph_finalize)(qnn_api_handle graph, qnn_api_handle profile, qnn_api_handle signal);
  /* 20 */
  uint64_t (*graph_retrieve)(qnn_api_handle context, const char* name, qnn_api_handle* out);
  uint64_t (*graph_execute)(qnn_api_handle graph, const qnn_api_tensor* inputs, uint32_t n_inputs, qnn_api_tensor* outputs,
                            uint32_t n_outputs, qnn_api_handle profile, qnn_api_handle signal);
  qnn_api_unused unused_22_to_23[2];
  uint64_t (*tensor_create_graph_tensor)(qnn_api_handle graph, qnn_api_tensor* tensor);
  uint64_t (*log_create)(qnn_api_log_callback callback, uint32_t level, qnn_api_handle* out);
  uint64_t (*log_set_level)(qnn_api_handle log, uint32_t level);
  uint64_t (*log_free)(qnn_api_handle log);
  qnn_api_unused unused_28_to_39[12];
  /* 40 */
  uint64_t (*device_create)(qnn_api_handle log, const qnn_api_config** config, qnn_api_handle* out);
  qnn_api_unused unused_41_to_42[2];
  uint64_t (*device_free)(qnn_api_handle device);
  qnn_api_unused unused_44_to_47[4];
  uint64_t (*error_get_message)(uint64_t error, const char** out);
} qnn_api_interface;
enum { QNN_API_TABLE = 40 }; /* byte offset of function 0 */
static_assert(offsetof(qnn_api_interface, property_has_capability) == QNN_API_TABLE + 8 * 0, "function table");
static_assert(offsetof(qnn_api_interface, backend_create) == QNN_API_TABLE + 8 * 1, "backendCreate");
static_assert(offsetof(qnn_api_interface, backend_get_build_id) == QNN_API_TABLE + 8 * 4, "backendGetBuildId");
static_assert(offsetof(qnn_api_interface, backend_validate_op) == QNN_API_TABLE + 8 * 7, "backendValidateOpConfig");
static_assert(offsetof(qnn_api_interface, backend_free) == QNN_API_TABLE + 8 * 8, "backendFree");
static_assert(offsetof(qnn_api_interface, context_create) == QNN_API_TABLE + 8 * 9, "contextCreate");
static_assert(offsetof(qnn_api_interface, context_get_binary_size) == QNN_API_TABLE + 8 * 11, "contextGetBinarySize");
static_assert(offsetof(qnn_api_interface, context_get_binary) == QNN_API_TABLE + 8 * 12, "contextGetBinary");
static_assert(offsetof(qnn_api_interface, context_create_from_binary) == QNN_API_TABLE + 8 * 13, "contextCreateFromBinary");
static_assert(offsetof(qnn_api_interface, context_free) == QNN_API_TABLE + 8 * 14, "contextFree");
static_assert(offsetof(qnn_api_interface, graph_create) == QNN_API_TABLE + 8 * 15, "graphCreate");
static_assert(offsetof(qnn_api_interface, graph_add_node) == QNN_API_TABLE + 8 * 18, "graphAddNode");
static_assert(offsetof(qnn_api_interface, graph_finalize) == QNN_API_TABLE + 8 * 19, "graphFinalize");
static_assert(offsetof(qnn_api_interface, graph_retrieve) == QNN_API_TABLE + 8 * 20, "graphRetrieve");
static_assert(offsetof(qnn_api_interface, graph_execute) == QNN_API_TABLE + 8 * 21, "graphExecute");
static_assert(offsetof(qnn_api_interface, tensor_create_graph_tensor) == QNN_API_TABLE + 8 * 24, "tensorCreateGraphTensor");
static_assert(offsetof(qnn_api_interface, log_create) == QNN_API_TABLE + 8 * 25, "logCreate");
static_assert(offsetof(qnn_api_interface, log_free) == QNN_API_TABLE + 8 * 27, "logFree");
static_assert(offsetof(qnn_api_interface, device_create) == QNN_API_TABLE + 8 * 40, "deviceCreate");
static_assert(offsetof(qnn_api_interface, device_free) == QNN_API_TABLE + 8 * 43, "deviceFree");
static_assert(offsetof(qnn_api_interface, error_get_message) == QNN_API_TABLE + 8 * 48, "errorGetMessage");

typedef struct qnn_api_system_interface {
  uint32_t backend_id;
  const char* provider_name;
  qnn_api_version version;
  uint64_t (*context_create)(qnn_api_handle* out);
  uint64_t (*context_get_binary_info)(qnn_api_handle context, void* buffer, uint64_t size, const qnn_api_binary_info** out,
                                      uint64_t* out_size);
  qnn_api_unused context_get_metadata;
  uint64_t (*context_free)(qnn_api_handle context);
} qnn_api_system_interface;
static_assert(offsetof(qnn_api_system_interface, version) == 16, "SystemInterface.version");
static_assert(offsetof(qnn_api_system_interface, context_create) == 32, "SystemInterface table");

typedef uint64_t (*qnn_api_get_providers)(const qnn_api_interface*** list, uint32_t* count);
typedef uint64_t (*qnn_api_system_get_providers)(const qnn_api_system_interface*** list, uint32_t* count);

#endif
