// The façade over FlatBuffers, which has a verifier and a builder for C++ only. It translates between the plain structs of pte_schema.h
// and the generated code, through base/memory.h. What a .pte means, and whether its indices make sense, is not decided here.

#include <cstring>
#include <new>

#include "program_generated.h"
#include "qnn_options_generated.h"

extern "C" {
#include "executorch/pte_schema.h"
}

static_assert(FLATBUFFERS_LITTLEENDIAN, "lists of integers are used in place, so the host must be little-endian like the file");

namespace {

namespace fb = flatbuffers;
namespace ps = pte_schema;
namespace qo = qnn_options_schema;

constexpr const char* options_key = "qnn_compile_spec";
constexpr int32_t backend_gpu = 1, backend_htp = 2;

/* ---- Reading ---- */

class reader {
 public:
  reader(size_t size, const char* path, arena* memory) : elements_left_(size / 4), path_(path), memory_(memory) {}

  genai_status* program(const ps::Program& in, pte_raw_program* out) {
    out->version = in.version();
    GENAI_TRY(list(in.plans(), &out->n_plans, &out->plans));
    for (uint32_t i = 0; i < out->n_plans; i++) GENAI_TRY(plan(*in.plans()->Get(i), &out->plans[i]));
    GENAI_TRY(list(in.segments(), &out->n_segments, &out->segments));
    for (uint32_t i = 0; i < out->n_segments; i++) {
      out->segments[i] = {in.segments()->Get(i)->offset(), in.segments()->Get(i)->size()};
    }
    GENAI_TRY(list(in.inline_data(), &out->n_inline, &out->inline_data));
    for (uint32_t i = 0; i < out->n_inline; i++) {
      const fb::Vector<uint8_t>* data = in.inline_data()->Get(i)->data();
      if (data) out->inline_data[i] = {data->data(), data->size()};
    }
    return nullptr;
  }

 private:
  /* Every element of a list takes at least 4 bytes of a file whose lists do not overlap. */
  genai_status* spend(uint64_t elements) {
    if (elements > elements_left_) {
      return genai_status_create(GENAI_ERROR_BAD_FILE,
                                 "%s: the lists of its program hold more elements than the file has bytes for; the file is damaged", path_);
    }
    elements_left_ -= elements;
    return nullptr;
  }

  template <typename In, typename Out>
  genai_status* list(const fb::Vector<In>* in, uint32_t* count, Out** out) {
    const uint32_t n = in ? in->size() : 0;
    GENAI_TRY(spend(n));
    *out = static_cast<Out*>(arena_calloc(memory_, n, sizeof(Out)));
    if (!*out) return genai_status_out_of_memory();
    *count = n;
    return nullptr;
  }

  genai_status* borrow(const fb::Vector<int32_t>* in, uint32_t* count, const int32_t** out) {
    static const int32_t empty[1] = {}; /* never NULL, so that callers may add to it */
    *out = in ? in->data() : empty;
    *count = in ? in->size() : 0;
    return spend(*count);
  }

  genai_status* value(const ps::EValue& in, pte_raw_value* out) {
    out->kind = PTE_RAW_SCALAR;
    if (const ps::Int* integer = in.val_as_Int()) {
      out->as.scalar.kind = PTE_INT;
      out->as.scalar.as.i = integer->value();
    } else if (const ps::Bool* boolean = in.val_as_Bool()) {
      out->as.scalar.kind = PTE_BOOL;
      out->as.scalar.as.b = boolean->value();
    } else if (const ps::Double* real = in.val_as_Double()) {
      out->as.scalar.kind = PTE_DOUBLE;
      out->as.scalar.as.d = real->value();
    } else if (const ps::String* string = in.val_as_String()) {
      out->as.scalar.kind = PTE_STRING;
      out->as.scalar.as.s = string->value() ? string->value()->c_str() : "";
    } else if (const ps::Tensor* tensor = in.val_as_Tensor()) {
      out->kind = PTE_RAW_TENSOR;
      pte_raw_tensor& t = out->as.tensor;
      t.scalar_type = tensor->scalar_type();
      t.storage_offset = tensor->storage_offset();
      t.shape_dynamism = tensor->shape_dynamism();
      GENAI_TRY(borrow(tensor->sizes(), &t.rank, &t.sizes));
      if (tensor->dim_order()) {
        GENAI_TRY(spend(tensor->dim_order()->size() / 4));
        t.dim_order = tensor->dim_order()->data();
        t.n_dim_order = tensor->dim_order()->size();
      }
    } else {
      out->kind = PTE_RAW_OTHER;
    }
    return nullptr;
  }

  genai_status* delegate(const ps::Delegate& in, pte_raw_delegate* out) {
    out->id = in.id() ? in.id()->c_str() : "";
    if (in.processed()) {
      out->in_segment = in.processed()->location() == 1;
      out->index = in.processed()->index();
    } else {
      out->index = UINT32_MAX;
    }
    const auto* specs = in.compile_specs();
    if (!specs) return nullptr;
    GENAI_TRY(spend(specs->size()));
    for (const ps::CompileSpec* spec : *specs) {
      if (spec->key() && spec->value() && !std::strcmp(spec->key()->c_str(), options_key)) {
        out->options = spec->value()->data();
        out->options_size = spec->value()->size();
      }
    }
    return nullptr;
  }

  genai_status* instructions(const fb::Vector<fb::Offset<ps::Chain>>& chains, pte_raw_plan* out) {
    uint64_t count = 0;
    for (const ps::Chain* chain : chains) count += chain->instructions() ? chain->instructions()->size() : 0;
    GENAI_TRY(spend(chains.size() + count));
    out->instructions = static_cast<pte_raw_instruction*>(arena_calloc(memory_, count, sizeof(pte_raw_instruction)));
    if (!out->instructions) return genai_status_out_of_memory();
    for (const ps::Chain* chain : chains) {
      if (!chain->instructions()) continue;
      for (const ps::Instruction* in : *chain->instructions()) {
        pte_raw_instruction& instruction = out->instructions[out->n_instructions++];
        if (const ps::DelegateCall* call = in->call_as_DelegateCall()) {
          instruction.is_delegate_call = true;
          instruction.delegate = call->delegate_index();
          GENAI_TRY(borrow(call->args(), &instruction.n_args, &instruction.args));
        }
      }
    }
    return nullptr;
  }

  genai_status* plan(const ps::Plan& in, pte_raw_plan* out) {
    out->name = in.name() ? in.name()->c_str() : "";
    GENAI_TRY(borrow(in.inputs(), &out->n_inputs, &out->inputs));
    GENAI_TRY(borrow(in.outputs(), &out->n_outputs, &out->outputs));
    GENAI_TRY(list(in.values(), &out->n_values, &out->values));
    for (uint32_t i = 0; i < out->n_values; i++) GENAI_TRY(value(*in.values()->Get(i), &out->values[i]));
    GENAI_TRY(list(in.delegates(), &out->n_delegates, &out->delegates));
    for (uint32_t i = 0; i < out->n_delegates; i++) GENAI_TRY(delegate(*in.delegates()->Get(i), &out->delegates[i]));
    return in.chains() ? instructions(*in.chains(), out) : nullptr;
  }

  uint64_t elements_left_;
  const char* path_;
  arena* memory_;
};

/* ---- Writing ---- */

/* FlatBuffers wants an allocator that never returns null; the exception is caught where the builder was made. */
class builder_memory : public fb::Allocator {
 public:
  uint8_t* allocate(size_t size) override {
    void* block = mem_alloc(size);
    if (!block) throw std::bad_alloc();
    return static_cast<uint8_t*>(block);
  }
  void deallocate(uint8_t* block, size_t) override { mem_free(block); }
};

/* Offsets of the tables just written, to become a vector. */
template <typename T>
class offsets {
 public:
  explicit offsets(size_t count) : count_(count), items_(static_cast<fb::Offset<T>*>(mem_calloc(count, sizeof(fb::Offset<T>)))) {
    if (!items_) throw std::bad_alloc();
  }
  ~offsets() { mem_free(items_); }
  offsets(const offsets&) = delete;
  offsets& operator=(const offsets&) = delete;
  fb::Offset<T>& operator[](size_t i) { return items_[i]; }
  fb::Offset<fb::Vector<fb::Offset<T>>> finish(fb::FlatBufferBuilder& to) { return to.CreateVector(items_, count_); }

 private:
  size_t count_;
  fb::Offset<T>* items_;
};

fb::Offset<ps::EValue> write_value(fb::FlatBufferBuilder& to, const pte_raw_value& value) {
  if (value.kind == PTE_RAW_TENSOR) {
    const pte_raw_tensor& t = value.as.tensor;
    const auto sizes = to.CreateVector(t.sizes, t.rank);
    const auto order = to.CreateVector(t.dim_order, t.n_dim_order);
    const auto tensor = ps::CreateTensor(to, static_cast<int8_t>(t.scalar_type), 0, sizes, order);
    return ps::CreateEValue(to, ps::Value_Tensor, tensor.Union());
  }
  const pte_scalar& scalar = value.as.scalar;
  switch (scalar.kind) {
    case PTE_INT:
      return ps::CreateEValue(to, ps::Value_Int, ps::CreateInt(to, scalar.as.i).Union());
    case PTE_BOOL:
      return ps::CreateEValue(to, ps::Value_Bool, ps::CreateBool(to, scalar.as.b).Union());
    case PTE_DOUBLE:
      return ps::CreateEValue(to, ps::Value_Double, ps::CreateDouble(to, scalar.as.d).Union());
    default:
      return ps::CreateEValue(to, ps::Value_String, ps::CreateString(to, to.CreateString(scalar.as.s)).Union());
  }
}

fb::Offset<ps::Delegate> write_delegate(fb::FlatBufferBuilder& to, const pte_raw_delegate& delegate) {
  const auto id = to.CreateString(delegate.id);
  const auto data = ps::CreateDelegateDataReference(to, delegate.in_segment ? 1 : 0, delegate.index);
  offsets<ps::CompileSpec> specs(1);
  const auto key = to.CreateString(options_key);
  specs[0] = ps::CreateCompileSpec(to, key, to.CreateVector(delegate.options, delegate.options_size));
  return ps::CreateDelegate(to, id, data, specs.finish(to));
}

fb::Offset<ps::Chain> write_chain(fb::FlatBufferBuilder& to, const pte_raw_plan& plan) {
  offsets<ps::Instruction> instructions(plan.n_instructions);
  for (uint32_t i = 0; i < plan.n_instructions; i++) {
    const pte_raw_instruction& in = plan.instructions[i];
    const auto call = ps::CreateDelegateCall(to, in.delegate, to.CreateVector(in.args, in.n_args));
    instructions[i] = ps::CreateInstruction(to, ps::Arguments_DelegateCall, call.Union());
  }
  const int32_t* none = nullptr;
  const auto chain_inputs = to.CreateVector(none, 0);
  const auto chain_outputs = to.CreateVector(none, 0);
  return ps::CreateChain(to, chain_inputs, chain_outputs, instructions.finish(to));
}

fb::Offset<ps::Plan> write_plan(fb::FlatBufferBuilder& to, const pte_raw_plan& plan) {
  const auto name = to.CreateString(plan.name);
  const auto input_tree = to.CreateString(plan.input_tree);
  const auto output_tree = to.CreateString(plan.output_tree);
  const auto container = ps::CreateContainerMetadata(to, input_tree, output_tree);
  offsets<ps::EValue> values(plan.n_values);
  for (uint32_t i = 0; i < plan.n_values; i++) values[i] = write_value(to, plan.values[i]);
  const auto value_list = values.finish(to);
  const auto inputs = to.CreateVector(plan.inputs, plan.n_inputs);
  const auto plan_outputs = to.CreateVector(plan.outputs, plan.n_outputs);
  offsets<ps::Chain> chains(1);
  chains[0] = write_chain(to, plan);
  const auto chain_list = chains.finish(to);
  const auto operators = offsets<ps::Operator>(0).finish(to);
  offsets<ps::Delegate> delegates(plan.n_delegates);
  for (uint32_t i = 0; i < plan.n_delegates; i++) delegates[i] = write_delegate(to, plan.delegates[i]);
  const auto delegate_list = delegates.finish(to);
  int64_t* sizes = nullptr;
  const auto buffer_sizes = to.CreateUninitializedVector<int64_t>(plan.n_buffer_sizes, &sizes);
  std::memset(sizes, 0, plan.n_buffer_sizes * sizeof *sizes);
  return ps::CreatePlan(to, name, container, value_list, inputs, plan_outputs, chain_list, operators, delegate_list, buffer_sizes);
}

fb::Offset<ps::Program> write_program(fb::FlatBufferBuilder& to, const pte_raw_program& program) {
  offsets<ps::Plan> plans(program.n_plans);
  for (uint32_t i = 0; i < program.n_plans; i++) plans[i] = write_plan(to, program.plans[i]);
  const auto plan_list = plans.finish(to);
  const auto constants = offsets<ps::Buffer>(0).finish(to);
  const auto inline_data = offsets<ps::InlineData>(0).finish(to);
  offsets<ps::Segment> segments(program.n_segments);
  for (uint32_t i = 0; i < program.n_segments; i++) {
    segments[i] = ps::CreateSegment(to, program.segments[i].offset, program.segments[i].size);
  }
  const auto segment_list = segments.finish(to);
  const uint64_t first_constant = 0;
  const auto constant_segment = ps::CreateSubsegmentOffsets(to, 0, to.CreateVector(&first_constant, 1));
  return ps::CreateProgram(to, program.version, plan_list, constants, inline_data, segment_list, constant_segment);
}

/* Performance high, tensors' own types, as the stock flow has them by default. */
fb::Offset<qo::BackendOptions> gpu_backend(fb::FlatBufferBuilder& to) {
  return qo::CreateBackendOptions(to, backend_gpu, 0, qo::CreateGpuOptions(to, 0, 3, true, true, true, false));
}

fb::Offset<qo::BackendOptions> htp_backend(fb::FlatBufferBuilder& to, const pte_delegate_options& in) {
  qo::HtpOptionsBuilder htp(to);
  htp.add_performance_mode(static_cast<int32_t>(in.performance_mode));
  htp.add_precision(in.fp16 ? 1 : 0);
  htp.add_conv_hmx(true);
  htp.add_fold_relu(true);
  htp.add_weight_sharing(in.weight_sharing);
  const auto htp_options = htp.Finish();
  return qo::CreateBackendOptions(to, backend_htp, htp_options);
}

fb::Offset<qo::Options> write_options(fb::FlatBufferBuilder& to, const pte_delegate_options& in) {
  const auto htp_info = qo::CreateHtpInfo(to, static_cast<int32_t>(in.htp_arch), in.vtcm_mb);
  const auto soc = qo::CreateSocInfo(to, static_cast<int32_t>(in.soc_model), htp_info);
  const auto backend = in.gpu ? gpu_backend(to) : htp_backend(to, in);
  const auto library_path = to.CreateString("");
  const auto saver_directory = to.CreateString("saver_output");
  const auto op_packages = qo::CreateOpPackages(to, offsets<qo::OpPackage>(0).finish(to));
  qo::OptionsBuilder options(to);
  options.add_soc(soc);
  options.add_backend(backend);
  options.add_library_path(library_path);
  options.add_log_level(1);
  options.add_online_prepare(in.gpu);
  options.add_profile_level(static_cast<int32_t>(in.profile_level));
  options.add_shared_buffer(in.shared_buffer);
  options.add_saver_output_dir(saver_directory);
  options.add_op_packages(op_packages);
  return options.Finish();
}

/* Runs `body(builder)`, which finishes the buffer, and appends what it built. */
template <typename Body>
genai_status* build(text* out, Body body) {
  builder_memory memory;
  try {
    fb::FlatBufferBuilder builder(4096, &memory);
    body(builder);
    return text_append(out, reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  } catch (const std::bad_alloc&) {
    return genai_status_out_of_memory();
  }
}

/* The verifier asserts that sizes fit its offsets, and counts tables: none takes less than the 4 bytes of its header and the 4 that refer
 * to it, unless tables share bytes. */
genai_status* verifiable(size_t size, const char* path, const char* what) {
  if (size < FLATBUFFERS_MAX_BUFFER_SIZE) return nullptr;
  return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: its %s takes %zu bytes; a flatbuffer takes less than 2 GiB", path, what, size);
}

}  // namespace

genai_status* pte_schema_read(const void* data, size_t size, const char* path, arena* memory, pte_raw_program* out) {
  GENAI_TRY(verifiable(size, path, "program"));
  fb::Verifier verifier(static_cast<const uint8_t*>(data), size, 64, static_cast<fb::uoffset_t>(size / 8));
  if (!ps::VerifyProgramBuffer(verifier)) {
    return genai_status_create(
        GENAI_ERROR_BAD_FILE,
        "%s: its program (%zu bytes) is not a well-formed flatbuffer; the file is damaged or not an ExecuTorch program", path, size);
  }
  pte_raw_program program = {};
  GENAI_TRY(reader(size, path, memory).program(*ps::GetProgram(data), &program));
  *out = program;
  return nullptr;
}

genai_status* pte_schema_write(const pte_raw_program* program, text* out) {
  return build(out, [program](fb::FlatBufferBuilder& to) { ps::FinishProgramBuffer(to, write_program(to, *program)); });
}

genai_status* pte_options_read(const void* data, size_t size, const char* path, pte_raw_options* out) {
  GENAI_TRY(verifiable(size, path, "delegate option block"));
  fb::Verifier verifier(static_cast<const uint8_t*>(data), size, 64, static_cast<fb::uoffset_t>(size / 8));
  if (!qo::VerifyOptionsBuffer(verifier)) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: the QNN delegate's option block (%zu bytes) is not a well-formed flatbuffer",
                               path, size);
  }
  const qo::Options* options = qo::GetOptions(data);
  pte_raw_options result = {};
  result.online_prepare = options->online_prepare();
  result.delegate.shared_buffer = options->shared_buffer();
  result.delegate.profile_level = static_cast<uint32_t>(options->profile_level());
  if (const qo::SocInfo* soc = options->soc()) {
    result.delegate.soc_model = static_cast<uint32_t>(soc->model());
    if (soc->htp()) {
      result.delegate.htp_arch = static_cast<uint32_t>(soc->htp()->arch());
      result.delegate.vtcm_mb = soc->htp()->vtcm_mb();
    }
  }
  if (const qo::BackendOptions* backend = options->backend()) {
    result.backend = backend->backend();
    result.delegate.gpu = result.backend == backend_gpu && result.online_prepare;
    if (const qo::HtpOptions* htp = backend->htp()) {
      result.delegate.fp16 = htp->precision() == 1;
      result.delegate.weight_sharing = htp->weight_sharing();
      result.delegate.performance_mode = static_cast<uint32_t>(htp->performance_mode());
    }
  }
  *out = result;
  return nullptr;
}

genai_status* pte_options_write(const pte_delegate_options* options, text* out) {
  return build(out, [options](fb::FlatBufferBuilder& to) { qo::FinishOptionsBuffer(to, write_options(to, *options)); });
}
