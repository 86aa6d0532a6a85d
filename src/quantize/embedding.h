/* Names that the split embedding gives its tensors. Internal to the room. */
#ifndef GENAI_QUANTIZE_EMBEDDING_H
#define GENAI_QUANTIZE_EMBEDDING_H

#define EMBEDDING_CODES "embedding.codes"
#define EMBEDDING_SCALES "embedding.scales"

#endif
