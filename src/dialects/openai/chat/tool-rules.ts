import type { ToolRules } from '../../shared/tool-fit.ts';
import { functionNames, fittedFunction } from '../tool-schemas.ts';
import { dialect } from './wire.ts';

/** @param custom does the provider accept tools of free text? */
export const toolRules = (custom: boolean): ToolRules => ({ dialect, names: functionNames, custom, namespaces: false, fitted: fittedFunction });
