export { ReAct, react, type ReActDependencies } from "./architectures/react.ts";
export { soloAgent, type SoloAgentOptions } from "./solo-agent.ts";
