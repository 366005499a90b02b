//===- Architectures.h - The importers of all architectures -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_ARCHITECTURES_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_ARCHITECTURES_H

#include "attune/Import/HuggingFace/Architecture.h"

namespace attune::hf {

/// In alphabetical order, then those of plugins; a new architecture is added to
/// Architectures.cpp.
const std::vector<Architecture> &architectures();

std::optional<spec::Model> importAFMoE(ImportContext &context);
std::optional<spec::Model> importAlbert(ImportContext &context);
std::optional<spec::Model> importApertus(ImportContext &context);
std::optional<spec::Model> importArcee(ImportContext &context);
std::optional<spec::Model> importBailingMoE(ImportContext &context);
std::optional<spec::Model> importBamba(ImportContext &context);
std::optional<spec::Model> importBart(ImportContext &context);
std::optional<spec::Model> importBlenderbot(ImportContext &context);
std::optional<spec::Model> importBioGPT(ImportContext &context);
std::optional<spec::Model> importBert(ImportContext &context);
std::optional<spec::Model> importBloom(ImportContext &context);
std::optional<spec::Model> importChatGLM(ImportContext &context);
std::optional<spec::Model> importClip(ImportContext &context);
std::optional<spec::Model> importCodeGen(ImportContext &context);
std::optional<spec::Model> importCohere(ImportContext &context);
std::optional<spec::Model> importCWM(ImportContext &context);
std::optional<spec::Model> importCohere2(ImportContext &context);
std::optional<spec::Model> importDebertaV2(ImportContext &context);
std::optional<spec::Model> importDeepSeek1(ImportContext &context);
std::optional<spec::Model> importDeepSeekV2(ImportContext &context);
std::optional<spec::Model> importDeepSeekV3(ImportContext &context);
std::optional<spec::Model> importDeepSeekV32(ImportContext &context);
std::optional<spec::Model> importDeiT(ImportContext &context);
std::optional<spec::Model> importDinov2(ImportContext &context);
std::optional<spec::Model> importDinov2WithRegisters(ImportContext &context);
std::optional<spec::Model> importDinov3(ImportContext &context);
std::optional<spec::Model> importDistilBert(ImportContext &context);
std::optional<spec::Model> importDots1(ImportContext &context);
std::optional<spec::Model> importElectra(ImportContext &context);
std::optional<spec::Model> importEnCodec(ImportContext &context);
std::optional<spec::Model> importERNIE45(ImportContext &context);
std::optional<spec::Model> importERNIE45MoE(ImportContext &context);
std::optional<spec::Model> importEsm(ImportContext &context);
std::optional<spec::Model> importEXAONE(ImportContext &context);
std::optional<spec::Model> importEXAONE4(ImportContext &context);
std::optional<spec::Model> importEXAONEMoE(ImportContext &context);
std::optional<spec::Model> importFalcon(ImportContext &context);
std::optional<spec::Model> importFalconH1(ImportContext &context);
std::optional<spec::Model> importFalconMamba(ImportContext &context);
std::optional<spec::Model> importFlexOlmo(ImportContext &context);
std::optional<spec::Model> importFlux(ImportContext &context);
std::optional<spec::Model> importGemma(ImportContext &context);
std::optional<spec::Model> importGemma2(ImportContext &context);
std::optional<spec::Model> importGemma3(ImportContext &context);
std::optional<spec::Model> importGemma3n(ImportContext &context);
std::optional<spec::Model> importGLM(ImportContext &context);
std::optional<spec::Model> importGLM4(ImportContext &context);
std::optional<spec::Model> importGLM4MoE(ImportContext &context);
std::optional<spec::Model> importGLM4MoELite(ImportContext &context);
std::optional<spec::Model> importGLMMoEDSA(ImportContext &context);
std::optional<spec::Model> importGPT2(ImportContext &context);
std::optional<spec::Model> importGPTBigCode(ImportContext &context);
std::optional<spec::Model> importGPTJ(ImportContext &context);
std::optional<spec::Model> importGPTNeo(ImportContext &context);
std::optional<spec::Model> importGPTNeoX(ImportContext &context);
std::optional<spec::Model> importGptOss(ImportContext &context);
std::optional<spec::Model> importHelium(ImportContext &context);
std::optional<spec::Model> importGranite(ImportContext &context);
std::optional<spec::Model> importGraniteHybrid(ImportContext &context);
std::optional<spec::Model> importGraniteMoE(ImportContext &context);
std::optional<spec::Model> importGraniteMoEShared(ImportContext &context);
std::optional<spec::Model> importHubert(ImportContext &context);
std::optional<spec::Model> importHunYuanDense(ImportContext &context);
std::optional<spec::Model> importHunYuanMoE(ImportContext &context);
std::optional<spec::Model> importHyV3(ImportContext &context);
std::optional<spec::Model> importInternLM2(ImportContext &context);
std::optional<spec::Model> importInternLM3(ImportContext &context);
std::optional<spec::Model> importJamba(ImportContext &context);
std::optional<spec::Model> importJinaV3(ImportContext &context);
std::optional<spec::Model> importKimiLinear(ImportContext &context);
std::optional<spec::Model> importLFM2(ImportContext &context);
std::optional<spec::Model> importLFM2MoE(ImportContext &context);
std::optional<spec::Model> importLlama(ImportContext &context);
std::optional<spec::Model> importLlama4(ImportContext &context);
std::optional<spec::Model> importM2M100(ImportContext &context);
std::optional<spec::Model> importMamba(ImportContext &context);
std::optional<spec::Model> importMamba2(ImportContext &context);
std::optional<spec::Model> importMarian(ImportContext &context);
std::optional<spec::Model> importMBart(ImportContext &context);
std::optional<spec::Model> importMiMo(ImportContext &context);
std::optional<spec::Model> importMiniCPM(ImportContext &context);
std::optional<spec::Model> importMiniCPM3(ImportContext &context);
std::optional<spec::Model> importMiniMax(ImportContext &context);
std::optional<spec::Model> importMiniMaxM2(ImportContext &context);
std::optional<spec::Model> importMiniMaxText(ImportContext &context);
std::optional<spec::Model> importMinistral(ImportContext &context);
std::optional<spec::Model> importMinistral3(ImportContext &context);
std::optional<spec::Model> importMistral(ImportContext &context);
std::optional<spec::Model> importMixtral(ImportContext &context);
std::optional<spec::Model> importModernBert(ImportContext &context);
std::optional<spec::Model> importMPNet(ImportContext &context);
std::optional<spec::Model> importMPT(ImportContext &context);
std::optional<spec::Model> importMT5(ImportContext &context);
std::optional<spec::Model> importMusicGen(ImportContext &context);
std::optional<spec::Model> importNemotron(ImportContext &context);
std::optional<spec::Model> importNemotronH(ImportContext &context);
std::optional<spec::Model> importNomicBert(ImportContext &context);
std::optional<spec::Model> importOlmo(ImportContext &context);
std::optional<spec::Model> importOlmo2(ImportContext &context);
std::optional<spec::Model> importOlmo3(ImportContext &context);
std::optional<spec::Model> importOLMoE(ImportContext &context);
std::optional<spec::Model> importOpenAIGPT(ImportContext &context);
std::optional<spec::Model> importOPT(ImportContext &context);
std::optional<spec::Model> importPegasus(ImportContext &context);
std::optional<spec::Model> importPhi(ImportContext &context);
std::optional<spec::Model> importPhi3(ImportContext &context);
std::optional<spec::Model> importPhiMoE(ImportContext &context);
std::optional<spec::Model> importQwen(ImportContext &context);
std::optional<spec::Model> importQwen2(ImportContext &context);
std::optional<spec::Model> importQwen2MoE(ImportContext &context);
std::optional<spec::Model> importQwen3(ImportContext &context);
std::optional<spec::Model> importQwen35(ImportContext &context);
std::optional<spec::Model> importQwen35MoE(ImportContext &context);
std::optional<spec::Model> importQwen3MoE(ImportContext &context);
std::optional<spec::Model> importQwen3Next(ImportContext &context);
std::optional<spec::Model> importRoberta(ImportContext &context);
std::optional<spec::Model> importRWKV7(ImportContext &context);
std::optional<spec::Model> importSeedOSS(ImportContext &context);
std::optional<spec::Model> importSiglip(ImportContext &context);
std::optional<spec::Model> importSmolLM3(ImportContext &context);
std::optional<spec::Model> importSolarOpen(ImportContext &context);
std::optional<spec::Model> importStableDiffusion3(ImportContext &context);
std::optional<spec::Model> importStableLM(ImportContext &context);
std::optional<spec::Model> importStarcoder2(ImportContext &context);
std::optional<spec::Model> importT5(ImportContext &context);
std::optional<spec::Model> importUMT5(ImportContext &context);
std::optional<spec::Model> importVaultGemma(ImportContext &context);
std::optional<spec::Model> importViT(ImportContext &context);
std::optional<spec::Model> importViTMAE(ImportContext &context);
std::optional<spec::Model> importIJepa(ImportContext &context);
std::optional<spec::Model> importWav2Vec2(ImportContext &context);
std::optional<spec::Model> importWhisper(ImportContext &context);
std::optional<spec::Model> importXGLM(ImportContext &context);
std::optional<spec::Model> importXLNet(ImportContext &context);
std::optional<spec::Model> importZamba2(ImportContext &context);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_ARCHITECTURES_H
