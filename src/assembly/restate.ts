export {
  checkIngress,
  restate,
  RestateAdmin,
  type Deployment,
  type Drained,
  type RestateOptions,
} from "../runtime/engines/restate/index.ts";
