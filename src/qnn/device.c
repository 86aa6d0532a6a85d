/* Device handles: how the HTP backend learns for which SoC it compiles. */
#include "qnn/qnn_internal.h"

genai_status* qnn_device_create(const qnn_library* library, uint32_t soc_model, qnn_api_handle* out) {
  const qnn_api_htp_device soc = {{0, soc_model, soc_model, 0}};
  const qnn_api_config custom = {.option = QNN_API_CONFIG_CUSTOM, .as.pointer = &soc};
  const qnn_api_config* configuration[] = {&custom, NULL};
  qnn_api_handle device = NULL;
  uint64_t code = library->api->device_create(library->log, configuration, &device);
  if (code) return qnn_vendor_error(library, code, "cannot create an HTP device for SoC model %u", soc_model);
  *out = device;
  return NULL;
}

void qnn_device_free(const qnn_library* library, qnn_api_handle device) {
  if (device) library->api->device_free(device);
}
