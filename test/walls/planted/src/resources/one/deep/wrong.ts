import '#resources/two/planted';
import '../../two/planted.ts';
import '../../../faces/planted.ts';
