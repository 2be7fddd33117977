export { ReAct, react, type ReActDependencies, type ReActOptions } from "./architectures/react.ts";
export { soloAgent, type SoloAgentOptions } from "./solo-agent.ts";
