import { casesOf } from "../effort.ts";
import { programCases } from "../scale/program-cases.ts";

programCases(casesOf(1_000, 24));
