/**
 * The names of enum values by their numbers, from 0. In JSON, protocol buffers accept either (https://protobuf.dev/programming-guides/json/), and Google's older SDK
 * for Python sends numbers. https://github.com/googleapis/googleapis/tree/master/google/ai/generativelanguage/v1beta
 */
const types = ['TYPE_UNSPECIFIED', 'STRING', 'NUMBER', 'INTEGER', 'BOOLEAN', 'ARRAY', 'OBJECT', 'NULL'];

const members: Readonly<Record<string, readonly string[]>> = {
  'functionCallingConfig.mode': ['MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED'],
  'safetySettings.category': [
    'UNSPECIFIED',
    'DEROGATORY',
    'TOXICITY',
    'VIOLENCE',
    'SEXUAL',
    'MEDICAL',
    'DANGEROUS',
    'HARASSMENT',
    'HATE_SPEECH',
    'SEXUALLY_EXPLICIT',
    'DANGEROUS_CONTENT',
    'CIVIC_INTEGRITY',
  ].map((name) => `HARM_CATEGORY_${name}`),
  'safetySettings.threshold': ['HARM_BLOCK_THRESHOLD_UNSPECIFIED', 'BLOCK_LOW_AND_ABOVE', 'BLOCK_MEDIUM_AND_ABOVE', 'BLOCK_ONLY_HIGH', 'BLOCK_NONE', 'OFF'],
  'executableCode.language': ['LANGUAGE_UNSPECIFIED', 'PYTHON'],
  'codeExecutionResult.outcome': ['OUTCOME_UNSPECIFIED', 'OUTCOME_OK', 'OUTCOME_FAILED', 'OUTCOME_DEADLINE_EXCEEDED'],
};

const taskTypes = [
  'TASK_TYPE_UNSPECIFIED',
  'RETRIEVAL_QUERY',
  'RETRIEVAL_DOCUMENT',
  'SEMANTIC_SIMILARITY',
  'CLASSIFICATION',
  'CLUSTERING',
  'QUESTION_ANSWERING',
  'FACT_VERIFICATION',
  'CODE_RETRIEVAL_QUERY',
];

/** The name of a member's value; undefined where the number stands for none. @param parent the member that contains it, itself or in a list */
export const enumName = (parent: string, member: string, value: number): string | undefined =>
  member === 'taskType' ? taskTypes[value] : members[`${parent}.${member}`]?.[value];

/** The name of a type of a schema; undefined where the number stands for none. */
export const typeName = (value: number): string | undefined => types[value];
