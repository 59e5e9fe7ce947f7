import { withCurrentSchema } from '../shared/current-schema.ts';
import type { ToolRules } from '../shared/tool-fit.ts';
import { dialect } from './wire.ts';

/** https://ai.google.dev/api/caching#FunctionDeclaration */
export const toolRules: ToolRules = {
  dialect,
  names: { fits: /^[a-zA-Z_][a-zA-Z0-9_.:-]*$/, longest: 128 },
  custom: false,
  namespaces: false,
  fitted: (tool, _, budget) => withCurrentSchema(tool, budget),
};
