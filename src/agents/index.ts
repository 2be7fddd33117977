export { ReAct, react, type ReActDependencies } from "./architectures/react.ts";
