export { priceCatalog, type PriceCatalogOptions } from "./prices/price-catalog.ts";
export type { PriceOverride, UsdPerMillion } from "./prices/price-override.ts";
export type { AiSdkModel } from "./models/ai-sdk-model.ts";
export { fallback, type FallbackOptions } from "./models/fallback.ts";
export { withSettings, type ModelSettings } from "./models/model-settings.ts";
export { findNamedModel, namedModel, type ModelName, type NamedModelOptions } from "./models/named-model.ts";
export { route, type RouteOptions } from "./models/route.ts";
export { toModel, type ModelLike } from "./models/to-model.ts";
export { openTelemetry, type OpenTelemetryOptions } from "./telemetry/open-telemetry.ts";
export { JsonSchemaCheck } from "./tools/json-schema-check.ts";
export { SchemaReader } from "./tools/schema-reader.ts";
export type { ToolBody, ToolProgress } from "./tools/tool-body.ts";
export {
  errorResult,
  fileResult,
  imageResult,
  textResult,
  type MediaData,
  type MediaOptions,
  type ToolReturn,
} from "./tools/tool-result.ts";
export { tool, type ClientToolOptions, type ToolOptions } from "./tools/tool.ts";
