import { withCurrentSchema } from '../shared/current-schema.ts';
import { alternatives, flattening } from '../shared/flat-root.ts';
import type { ToolRules } from '../shared/tool-fit.ts';
import { dialect } from './wire.ts';

const withFlatRoot = flattening(alternatives);

/** https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use#specifying-client-tools */
export const toolRules: ToolRules = {
  dialect,
  names: { fits: /^[a-zA-Z0-9_-]+$/, longest: 128 },
  custom: false,
  namespaces: false,
  fitted: (tool, ignored, budget) => withFlatRoot(withCurrentSchema(tool, budget), ignored, budget),
};
