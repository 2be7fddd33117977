/** Content parts of other APIs that users may pass by mistake, each with the part to use instead. */
export const foreignParts: Readonly<Record<string, string>> = {
  input_text: '{ type: "text", text }',
  output_text: '{ type: "text", text }',
  image_url: '{ type: "image", mediaType, source: { kind: "url", url } }',
  input_image: '{ type: "image", mediaType, source: { kind: "url", url } }',
  input_file: '{ type: "file", mediaType, source: { kind: "base64", data } }',
  document: '{ type: "file", mediaType, source: { kind: "base64", data } }',
  input_audio: '{ type: "file", mediaType, source: { kind: "base64", data } }',
  "tool-call": '{ type: "tool_call", callId, toolName, input }',
  tool_use: '{ type: "tool_call", callId, toolName, input }',
  "tool-result": '{ type: "tool_result", callId, toolName, output, isError }',
};

const media = 'mediaType, source: { kind: "base64", data } or { kind: "url", url }';

/** The form of each part that an input may contain. */
export const partForms: Readonly<Record<string, string>> = {
  text: '{ type: "text", text }',
  image: `{ type: "image", ${media} }`,
  file: `{ type: "file", ${media} }`,
};
