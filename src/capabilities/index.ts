export { openTelemetry, type OpenTelemetryOptions } from "./telemetry/open-telemetry.ts";
export { jsonSchemaCheck } from "./tools/schema-reader.ts";
export { tool, type ToolOptions, type ToolReturn } from "./tools/tool.ts";
